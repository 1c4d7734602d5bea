/** Converts a prompt to the messages of `/chat/completions`. */
import type * as Prompt from "@effect/ai/Prompt"
import { type Attachment, attachmentOf } from "./Attachments.ts"

type Wire = Readonly<Record<string, unknown>>

/** The API does not support a PDF by address. */
export const accepts = (attachment: Attachment): boolean => attachment.kind !== "pdf" || attachment.inline

const toContentPart = (part: Prompt.UserMessagePart): ReadonlyArray<Wire> => {
  if (part.type === "text") return [{ type: "text", text: part.text }]
  const attachment = attachmentOf(part)
  if (attachment === null) return []
  if (attachment.kind === "text") return [{ type: "text", text: attachment.text }]
  if (attachment.kind === "image") return [{ type: "image_url", image_url: { url: attachment.url } }]
  return [{ type: "file", file: { filename: attachment.name, file_data: attachment.url } }]
}

export const textOf = (parts: ReadonlyArray<Prompt.Part>): string =>
  parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")

/** Arguments that were not an object are sent back as an empty one, because many servers parse them. */
export const argumentsOf = ({ params }: Prompt.ToolCallPart): string =>
  typeof params === "object" && params !== null && !Array.isArray(params) ? JSON.stringify(params) : "{}"

export const outputOf = ({ result }: Prompt.ToolResultPart): string =>
  typeof result === "string" ? result : (JSON.stringify(result) ?? "null")

/** Names of the field that contains the reasoning. */
export const reasoningFields = ["reasoning_content", "reasoning"] as const
export type ReasoningField = (typeof reasoningFields)[number]

/** Reasoning before tool calls. Some services refuse the calls without it. */
const reasoningOf = (parts: ReadonlyArray<Prompt.AssistantMessagePart>): Wire =>
  Object.fromEntries(
    parts.flatMap((part) => {
      if (part.type !== "reasoning") return []
      const field = reasoningFields.find((name) => name === part.options["chatCompletions"]?.["field"])
      return field === undefined ? [] : [[field, part.text] as const]
    })
  )

/** Plain text as a string, anything else as parts. */
export const userMessage = (
  { content }: Prompt.UserMessage,
  toPart: (part: Prompt.UserMessagePart) => ReadonlyArray<Wire>
): Wire =>
  content.every(({ type }) => type === "text")
    ? { role: "user", content: textOf(content) }
    : { role: "user", content: content.flatMap(toPart) }

/** What the provider added to a call. Gemini refuses calls without it, and others refuse calls with it. */
const extraContentOf = (
  { options: { chatCompletions = {} } }: Prompt.ToolCallPart,
  provider: string
): Wire =>
  chatCompletions["provider"] === provider ? { extra_content: chatCompletions["extraContent"] } : {}

const assistant = ({ content }: Prompt.AssistantMessage, provider: string): Wire => {
  const text = textOf(content)
  const calls = content.flatMap((part) =>
    part.type === "tool-call" && !part.providerExecuted
      ? [
          {
            id: part.id,
            type: "function",
            function: { name: part.name, arguments: argumentsOf(part) },
            ...extraContentOf(part, provider)
          }
        ]
      : []
  )
  if (calls.length === 0) return { role: "assistant", content: text }
  return { role: "assistant", content: text === "" ? null : text, ...reasoningOf(content), tool_calls: calls }
}

const toMessages = (message: Prompt.Message, provider: string): ReadonlyArray<Wire> => {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }]
    case "user":
      return [userMessage(message, toContentPart)]
    case "assistant":
      return [assistant(message, provider)]
    case "tool":
      return message.content.map((part) => ({
        role: "tool",
        tool_call_id: part.id,
        content: outputOf(part)
      }))
  }
}

/** `provider` is the address of the provider that gets them. */
export const chatMessages = ({ content }: Prompt.Prompt, provider: string): ReadonlyArray<Wire> =>
  content.flatMap((message) => toMessages(message, provider))
