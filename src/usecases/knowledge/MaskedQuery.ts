/** The query of a search outside of turns. */
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { Masking } from "../chat/masking/Masking.ts"

/**
 * Returns the text without the values that the agent masks, as a turn searches for it: embedding and ranking may call
 * an outside provider.
 */
export const makeMaskedQuery = Effect.map(
  AgentStore,
  ({ maskingOf }) =>
    (scope: AgentScope, text: string): Effect.Effect<string> =>
      Effect.map(maskingOf(scope), (masking) =>
        masking === null ? text : new Masking(masking).searchable(text)
      )
)
