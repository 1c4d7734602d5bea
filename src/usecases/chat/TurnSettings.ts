/** Configuration of turns. */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"

export class TurnSettings extends Context.Tag("usecases/chat/TurnSettings")<
  TurnSettings,
  {
    /** A turn that takes longer fails with `RUNTIME_TIMEOUT`. */
    readonly timeout: Duration.Duration
    /** When false, requests with a runtime field fail with `RUNTIME_DATA_UNAVAILABLE`. */
    readonly runtimeData: boolean
    /** The public address of the realtime socket, `ws…/api/realtime`. */
    readonly realtimeUrl: string
    /** Time that running turns have to settle after the server has stopped listening. */
    readonly drain: Duration.Duration
  }
>() {}
