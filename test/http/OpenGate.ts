/** A gate that lets every request in, for servers whose tenants are not moved. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { workFor } from "../../src/concurrency/CurrentOwner.ts"
import { TenantGate } from "../../src/usecases/operations/moves/TenantGate.ts"

export const openGate = Layer.mock(TenantGate, {
  _tag: "usecases/operations/TenantGate",
  enter: workFor,
  whenAway: () => Effect.never
})
