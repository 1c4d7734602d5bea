/** {@link Realtime} for a service with one process. */
import * as Layer from "effect/Layer"
import { Realtime } from "../Realtime.ts"
import * as Subscribers from "./Subscribers.ts"

export const layerMemory = Layer.sync(Realtime, () => {
  const { deliver, subscribe } = Subscribers.make()
  return { publish: deliver, subscribe }
})
