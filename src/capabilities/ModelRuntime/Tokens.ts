/** Token counts for providers that report none, and for the runtime that has no model. */
import type { ModelRequest } from "../ModelRuntime.ts"

/** A cautious guess: about four Latin characters a token, one character of other scripts. */
export const estimateTokens = (text: string): number => {
  let wide = 0
  for (let place = 0; place < text.length; place++) if (text.charCodeAt(place) > 0x2e80) wide++
  return Math.ceil((text.length - wide) / 4) + wide
}

/** What a request's text comes to; attachments are not guessed. */
export const estimatePrompt = ({ prompt }: ModelRequest): number => {
  let tokens = 0
  for (const { content } of prompt.content) {
    if (typeof content === "string") tokens += estimateTokens(content)
    else for (const part of content) if (part.type === "text") tokens += estimateTokens(part.text)
  }
  return tokens
}
