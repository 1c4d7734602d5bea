/** Converts a prompt to the input items of `/responses`. */
import type * as Prompt from "@effect/ai/Prompt"
import { attachmentOf } from "./Attachments.ts"
import { argumentsOf, outputOf, textOf, userMessage } from "./ChatMessages.ts"

type Wire = Readonly<Record<string, unknown>>

const toContentPart = (part: Prompt.UserMessagePart): ReadonlyArray<Wire> => {
  if (part.type === "text") return [{ type: "input_text", text: part.text }]
  const attachment = attachmentOf(part)
  if (attachment === null) return []
  if (attachment.kind === "text") return [{ type: "input_text", text: attachment.text }]
  if (attachment.kind === "image") return [{ type: "input_image", image_url: attachment.url, detail: "auto" }]
  return attachment.inline
    ? [{ type: "input_file", filename: attachment.name, file_data: attachment.url }]
    : [{ type: "input_file", file_url: attachment.url }]
}

const assistant = ({ content }: Prompt.AssistantMessage): ReadonlyArray<Wire> => {
  const text = textOf(content)
  const calls = content.flatMap((part) =>
    part.type === "tool-call" && !part.providerExecuted
      ? [{ type: "function_call", call_id: part.id, name: part.name, arguments: argumentsOf(part) }]
      : []
  )
  return text === "" ? calls : [{ role: "assistant", content: text }, ...calls]
}

const toItems = (message: Prompt.Message): ReadonlyArray<Wire> => {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }]
    case "user":
      return [userMessage(message, toContentPart)]
    case "assistant":
      return assistant(message)
    case "tool":
      return message.content.map((part) => ({
        type: "function_call_output",
        call_id: part.id,
        output: outputOf(part)
      }))
  }
}

export const responsesInput = ({ content }: Prompt.Prompt): ReadonlyArray<Wire> => content.flatMap(toItems)
