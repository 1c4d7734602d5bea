/** The dashboard's session for tests of one group of routes: the user in `current` is signed in. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SessionUser } from "../../src/domain/accounts/Access.ts"
import { TenantId, UserId } from "../../src/domain/Ids.ts"
import { SessionAuth } from "../../src/http/Auth.ts"

/** An admin of the tenant `ten_1`, whom the test may replace. */
export const signedIn = () => {
  const current: { user: SessionUser } = {
    user: {
      userId: UserId.make("mbr_1"),
      tenantId: TenantId.make("ten_1"),
      email: "a@b.test",
      role: "admin",
      session: null
    }
  }
  const session = Layer.succeed(
    SessionAuth,
    Effect.sync(() => current.user)
  )
  return { current, session }
}
