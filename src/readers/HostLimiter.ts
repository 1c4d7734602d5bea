/** At most four concurrent requests per host, over all sources that this process reads. Owners take turns. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { OutboundHttpError } from "../capabilities/OutboundHttp.ts"
import { withSharedPermit } from "../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../concurrency/FairLimiter.ts"

const requestsPerHost = { permits: 4, maxPermitsPerOwner: 4, maxWaiting: 1_024 } as const

const tooManyWaiting = () =>
  new OutboundHttpError({ reason: "TimedOut", message: "Too many requests wait for this host." })

interface Host {
  readonly limiter: FairLimiter
  users: number
}

const make = () => {
  const hosts = new Map<string, Host>()
  const enter = (name: string) =>
    Effect.sync(() => {
      const host = hosts.get(name) ?? {
        limiter: new FairLimiter({ name: null, ...requestsPerHost }),
        users: 0
      }
      host.users++
      hosts.set(name, host)
      return host
    })
  const leave = (name: string, host: Host) =>
    Effect.sync(() => {
      host.users--
      if (host.users === 0) hosts.delete(name)
    })
  /** Runs `request` with a permit of the host. */
  const withHostPermit = <A, E, R>(
    name: string,
    request: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | OutboundHttpError, R> =>
    Effect.acquireUseRelease(
      enter(name),
      (host) => withSharedPermit(host.limiter, tooManyWaiting)(request),
      (host) => leave(name, host)
    )
  return { withHostPermit } as const
}

/** One per process, unless a test provides its own. */
export class HostLimiter extends Context.Reference<HostLimiter>()("readers/HostLimiter", {
  defaultValue: make
}) {}
