/** Converts a prompt to `system` and `messages` of Anthropic's `/messages`. */
import type * as Prompt from "@effect/ai/Prompt"
import { attachmentOf } from "./Attachments.ts"
import { outputOf } from "./ChatMessages.ts"

type Wire = Readonly<Record<string, unknown>>

interface Message {
  readonly role: "user" | "assistant"
  readonly content: ReadonlyArray<Wire>
}

/** The API refuses empty texts. */
const text = (value: string): ReadonlyArray<Wire> =>
  value.trim() === "" ? [] : [{ type: "text", text: value }]

/** Bytes inline, or the address from which the provider reads them. */
const sourceOf = (url: string): Wire => {
  const inline = /^data:([^;,]*);base64,/u.exec(url)
  return inline === null
    ? { type: "url", url }
    : { type: "base64", media_type: inline[1], data: url.slice(inline[0].length) }
}

const userPart = (part: Prompt.UserMessagePart): ReadonlyArray<Wire> => {
  if (part.type === "text") return text(part.text)
  const attachment = attachmentOf(part)
  if (attachment === null) return []
  if (attachment.kind === "text") return text(attachment.text)
  if (attachment.kind === "image") return [{ type: "image", source: sourceOf(attachment.url) }]
  return [{ type: "document", title: attachment.name, source: sourceOf(attachment.url) }]
}

/** Reasoning of other providers is omitted, because it lacks this one's signature. */
const thinkingBlock = ({
  options: { anthropic },
  text: thinking
}: Prompt.ReasoningPart): ReadonlyArray<Wire> => {
  const { redactedData, signature } = anthropic ?? {}
  if (typeof signature === "string") return [{ type: "thinking", thinking, signature }]
  return typeof redactedData === "string" ? [{ type: "redacted_thinking", data: redactedData }] : []
}

const assistantPart = (part: Prompt.AssistantMessagePart): ReadonlyArray<Wire> => {
  if (part.type === "text") return text(part.text)
  if (part.type === "reasoning") return thinkingBlock(part)
  if (part.type !== "tool-call" || part.providerExecuted) return []
  const { id, name, params } = part
  const input = typeof params === "object" && params !== null && !Array.isArray(params) ? params : {}
  return [{ type: "tool_use", id, name, input }]
}

const toolResult = (part: Prompt.ToolResultPart): Wire => ({
  type: "tool_result",
  tool_use_id: part.id,
  content: outputOf(part),
  ...(part.isFailure ? { is_error: true } : {})
})

const messageOf = (message: Prompt.Message): Message | null => {
  switch (message.role) {
    case "system":
      return null
    case "user":
      return { role: "user", content: message.content.flatMap(userPart) }
    case "assistant":
      return { role: "assistant", content: message.content.flatMap(assistantPart) }
    case "tool":
      return { role: "user", content: message.content.map(toolResult) }
  }
}

/** A conversation must begin with the user, but the history may have been cut. */
const omittedNotice: Message = {
  role: "user",
  content: [{ type: "text", text: "(Earlier messages are left out.)" }]
}

export const anthropicInput = ({ content }: Prompt.Prompt) => {
  const system = content
    .flatMap((message) => (message.role === "system" ? [message.content] : []))
    .join("\n\n")
  const messages = content.flatMap((message) => {
    const own = messageOf(message)
    return own === null || own.content.length === 0 ? [] : [own]
  })
  return {
    ...(system.trim() === "" ? {} : { system }),
    messages: messages[0]?.role === "assistant" ? [omittedNotice, ...messages] : messages
  }
}
