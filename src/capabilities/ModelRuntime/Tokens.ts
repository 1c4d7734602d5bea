/** Token counts for providers that report none, and for the runtime that has no model. */
import { estimateTokens } from "../../domain/Tokens.ts"
import type { ModelRequest } from "../ModelRuntime.ts"
import { countOf } from "./WireJson.ts"

/** Estimated tokens of a request's text. Attachments are not estimated. */
export const estimatePrompt = ({ prompt }: ModelRequest): number => {
  let tokens = 0
  for (const { content } of prompt.content) {
    if (typeof content === "string") tokens += estimateTokens(content)
    else for (const part of content) if (part.type === "text") tokens += estimateTokens(part.text)
  }
  return tokens
}

/** The provider's counts, with estimates for missing ones. */
export const usageOf = (
  request: ModelRequest,
  reply: string,
  input: unknown,
  output: unknown,
  cachedInput: unknown,
  reasoning?: unknown
) => {
  const inputTokens = countOf(input)
  const outputTokens = countOf(output)
  const cachedInputTokens = countOf(cachedInput)
  const reasoningTokens = countOf(reasoning)
  return {
    inputTokens: inputTokens ?? estimatePrompt(request),
    outputTokens: outputTokens ?? estimateTokens(reply),
    ...(cachedInputTokens === null || cachedInputTokens === 0 ? {} : { cachedInputTokens }),
    ...(reasoningTokens === null || reasoningTokens === 0 ? {} : { reasoningTokens }),
    ...(inputTokens === null || outputTokens === null ? { isEstimated: true } : {})
  }
}
