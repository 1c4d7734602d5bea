/** Pauses requested by a provider, shared by all processes that call it. */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

export interface ProviderBackoffService {
  /** The remaining time of the provider's pause; zero when there is none, or when it is unknown. */
  readonly left: (provider: string) => Effect.Effect<Duration.Duration>
  /** Begins a pause. A longer pause is not shortened. */
  readonly begin: (provider: string, pause: Duration.Duration) => Effect.Effect<void>
}

/** Default: pauses are not shared. Each caller of a provider also remembers its own. */
export class ProviderBackoff extends Context.Reference<ProviderBackoff>()("capabilities/ProviderBackoff", {
  defaultValue: (): ProviderBackoffService => ({
    left: () => Effect.succeed(Duration.zero),
    begin: () => Effect.void
  })
}) {}
