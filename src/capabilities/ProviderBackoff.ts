/** Pauses that a provider asked for, known to every process that calls it. */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

export interface ProviderBackoffService {
  /** The rest of the provider's pause; zero when there is none, or when it is unknown. */
  readonly left: (provider: string) => Effect.Effect<Duration.Duration>
  /** Begins a pause; a longer one that runs stays. */
  readonly begin: (provider: string, pause: Duration.Duration) => Effect.Effect<void>
}

/** Known to this process alone by default: who calls a provider remembers its pauses itself. */
export class ProviderBackoff extends Context.Reference<ProviderBackoff>()("capabilities/ProviderBackoff", {
  defaultValue: (): ProviderBackoffService => ({
    left: () => Effect.succeed(Duration.zero),
    begin: () => Effect.void
  })
}) {}
