/** Token counts for providers that report none, and for the runtime that has no model. */
import { estimateTokens } from "../../domain/Tokens.ts"
import type { ModelRequest } from "../ModelRuntime.ts"

/** What a request's text comes to; attachments are not guessed. */
export const estimatePrompt = ({ prompt }: ModelRequest): number => {
  let tokens = 0
  for (const { content } of prompt.content) {
    if (typeof content === "string") tokens += estimateTokens(content)
    else for (const part of content) if (part.type === "text") tokens += estimateTokens(part.text)
  }
  return tokens
}
