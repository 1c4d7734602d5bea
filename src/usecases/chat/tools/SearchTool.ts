/**
 * The tool by which the model searches again, where the agent allows it: with other words, or for one part of a
 * question. Calls, passages and time are bounded. New passages continue the numbering of the earlier ones.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ToolDeclaration } from "../../../capabilities/ModelRuntime.ts"
import { toolFailure } from "../../../domain/agents/ToolFailure.ts"
import type { Passage } from "../grounding/Passages.ts"
import * as Prompt from "../Prompt.ts"
import type { TurnTools } from "./Tools.ts"
import type { Turn } from "../Turn.ts"

const name = "search_sources"

/** Maximum characters of a query. */
const maxQueryLength = 1_000
/** Time-out of one search. */
const timeout = Duration.seconds(10)

const declaration: ToolDeclaration = {
  name,
  description:
    "Search the sources again. Use it only when the sources that you have do not answer: for other words, or for one part of " +
    "a question at a time. It returns further sources with numbers to cite.",
  parameters: {
    type: "object",
    properties: {
      query: { type: "string", description: "What to look for, in the language of the sources." }
    },
    required: ["query"],
    additionalProperties: false
  }
}

/** Whether the agent allows the tool, and the runtime can call it. */
export const isOffered = (
  { admission }: Turn,
  { readsPassages }: { readonly readsPassages: boolean }
): boolean => admission.hasSources && admission.maxSearches > 0 && !readsPassages

const refused = (message: string) => Effect.fail(toolFailure("INVALID_ARGUMENTS", message))

/** `search` returns passages that were not shown yet, with numbers that continue the earlier ones. */
export const addTo = (
  turn: Turn,
  tools: TurnTools,
  search: (query: string) => Effect.Effect<ReadonlyArray<Passage>>
): TurnTools => {
  const { maxSearches } = turn.admission
  let searches = 0
  const searchFor = (input: Parameters<TurnTools["call"]>[1]) => {
    const query = input?.["query"]
    if (typeof query !== "string" || query.trim() === "") return refused("query: expected a text")
    if (query.length > maxQueryLength) return refused(`query: at most ${maxQueryLength} characters`)
    if (searches >= maxSearches)
      return Effect.fail(
        toolFailure("TOOL_FAILED", "no more searches in this turn; answer with what you have")
      )
    searches++
    return search(query.trim()).pipe(
      Effect.timeoutFail({
        duration: timeout,
        onTimeout: () => toolFailure("TOOL_FAILED", "the search took too long")
      }),
      Effect.map((passages) =>
        passages.length === 0
          ? "Nothing further was found."
          : Prompt.sourcesText(turn.opening.runId, passages, turn.masking)
      )
    )
  }
  return {
    ...tools,
    declarations: [...tools.declarations.filter((tool) => tool.name !== name), declaration],
    sent: (tool, input) => (tool === name ? input : tools.sent(tool, input)),
    uncut: new Set([name]),
    call: (tool, input, progress) =>
      tool === name ? Effect.suspend(() => searchFor(input)) : tools.call(tool, input, progress)
  }
}
