/** Files that people send with a message: which, how large, and how they are kept. */
import * as Schema from "effect/Schema"
import { ArtifactRef } from "../knowledge/Source.ts"

/** What the bytes of an attachment may be. */
export const AttachmentType = Schema.Literal(
  "image/jpeg",
  "image/png",
  "image/webp",
  "image/gif",
  "application/pdf"
)
export type AttachmentType = typeof AttachmentType.Type

/** Files of one message. */
export const maxAttachments = 10

const MiB = 1_048_576
/** Most bytes of a file of each type. */
export const sizeLimits: Record<AttachmentType, number> = {
  "image/jpeg": 10 * MiB,
  "image/png": 10 * MiB,
  "image/webp": 10 * MiB,
  "image/gif": 10 * MiB,
  "application/pdf": 25 * MiB
}
/** Most bytes of any file. */
export const largestAttachment = Math.max(...Object.values(sizeLimits))

/** Bytes that {@link typeOf} must see to know every type. */
export const signatureLength = 12

const ascii = (head: Uint8Array, from: number, text: string) =>
  Array.from(text).every((character, place) => head[from + place] === character.charCodeAt(0))

/** The type that the first bytes of a file tell; null when it is none that is allowed. */
export const typeOf = (head: Uint8Array): AttachmentType | null => {
  if (head[0] === 0xff && head[1] === 0xd8 && head[2] === 0xff) return "image/jpeg"
  if (head[0] === 0x89 && ascii(head, 1, "PNG\r\n\u001a\n")) return "image/png"
  if (ascii(head, 0, "RIFF") && ascii(head, 8, "WEBP")) return "image/webp"
  if (ascii(head, 0, "GIF87a") || ascii(head, 0, "GIF89a")) return "image/gif"
  return ascii(head, 0, "%PDF-") ? "application/pdf" : null
}

/** True when the sender's word for the type is the type that the bytes tell. */
export const agrees = (declared: string, type: AttachmentType): boolean => {
  const [name = ""] = declared.split(";")
  const said = name.trim().toLowerCase()
  return said === type || (type === "image/jpeg" && (said === "image/jpg" || said === "image/pjpeg"))
}

/** A file of a message, as the message's row tells of it. */
export const StoredAttachment = Schema.Struct({
  artifact: ArtifactRef,
  mimeType: Schema.String,
  name: Schema.String,
  size: Schema.Int
})
export type StoredAttachment = typeof StoredAttachment.Type
