/** Files in a prompt, in the forms that providers' APIs accept: images and PDF inline or by address, text as text. */
import type * as Prompt from "@effect/ai/Prompt"
import { AttachmentType } from "../../domain/channels/Attachment.ts"
import { ModelError } from "../ModelRuntime.ts"

/** Known text-only models of the provider. For other names, only the answer shows what the model reads. */
const textOnly =
  /^(?:gpt-3\.5|gpt-4(?:-\d{4})?(?:-preview)?$|gpt-4-32k|o1-mini|o1-preview|o3-mini|text-|davinci|babbage)/i

/** File types that may be sent to the model `name`. */
export const readableBy = (name: string): ReadonlyArray<AttachmentType> =>
  textOnly.test(name) ? [] : AttachmentType.literals

export type Attachment =
  | { readonly kind: "image"; readonly url: string }
  | { readonly kind: "pdf"; readonly url: string; readonly name: string; readonly inline: boolean }
  | { readonly kind: "text"; readonly text: string }

const isAddress = (data: string): boolean => /^(?:https?|data):/i.test(data)

const toUrl = ({ data, mediaType }: Prompt.FilePart): string => {
  if (data instanceof URL) return data.href
  if (typeof data === "string") return isAddress(data) ? data : `data:${mediaType};base64,${data}`
  return `data:${mediaType};base64,${Buffer.from(data).toString("base64")}`
}

const toText = ({ data, fileName }: Prompt.FilePart): string | null => {
  if (data instanceof URL || (typeof data === "string" && isAddress(data))) return null
  const text = typeof data === "string" ? Buffer.from(data, "base64") : data
  return `${fileName ?? "File"}:\n${new TextDecoder().decode(text)}`
}

/** Null for a kind that no provider accepts. */
export const attachmentOf = (part: Prompt.FilePart): Attachment | null => {
  if (part.mediaType.startsWith("image/")) return { kind: "image", url: toUrl(part) }
  if (part.mediaType === "application/pdf") {
    const url = toUrl(part)
    return { kind: "pdf", url, name: part.fileName ?? "file.pdf", inline: url.startsWith("data:") }
  }
  const text = part.mediaType.startsWith("text/") ? toText(part) : null
  return text === null ? null : { kind: "text", text }
}

/** Returns an error when a user's file cannot be sent. `accepts` decides for the API. */
export const refusal = (
  prompt: Prompt.Prompt,
  accepts: (attachment: Attachment) => boolean
): ModelError | null => {
  for (const message of prompt.content) {
    if (message.role !== "user") continue
    for (const part of message.content) {
      if (part.type !== "file") continue
      const attachment = attachmentOf(part)
      if (attachment !== null && accepts(attachment)) continue
      return new ModelError({
        reason: "Rejected",
        message: "The provider's interface takes no files of this kind",
        retryable: false
      })
    }
  }
  return null
}
