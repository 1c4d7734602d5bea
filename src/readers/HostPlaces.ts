/** At most four requests at a time a host, over every source that this process reads. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

const places = 4

interface Host {
  readonly semaphore: Effect.Semaphore
  users: number
}

const make = () => {
  const hosts = new Map<string, Host>()
  const enter = (name: string) =>
    Effect.sync(() => {
      const host = hosts.get(name) ?? { semaphore: Effect.unsafeMakeSemaphore(places), users: 0 }
      host.users++
      hosts.set(name, host)
      return host
    })
  const leave = (name: string, host: Host) =>
    Effect.sync(() => {
      host.users--
      if (host.users === 0) hosts.delete(name)
    })
  /** Runs `request` when one of the host's places is free. */
  const within = <A, E, R>(name: string, request: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      enter(name),
      (host) => host.semaphore.withPermits(1)(request),
      (host) => leave(name, host)
    )
  return { within } as const
}

/** One for the process unless a test provides its own. */
export class HostPlaces extends Context.Reference<HostPlaces>()("readers/HostPlaces", {
  defaultValue: make
}) {}
