/** Files that people send with a message: allowed types, size limits, and the stored form. */
import * as Schema from "effect/Schema"
import { ArtifactRef } from "../knowledge/Source.ts"
import { MiB } from "../Bytes.ts"

/** Allowed types of attachments, detected from their bytes. */
export const AttachmentType = Schema.Literal(
  "image/jpeg",
  "image/png",
  "image/webp",
  "image/gif",
  "application/pdf"
)
export type AttachmentType = typeof AttachmentType.Type

/** Maximum number of files of one message. */
export const maxAttachments = 10

/** Maximum size in bytes for each type. */
export const sizeLimits: Record<AttachmentType, number> = {
  "image/jpeg": 10 * MiB,
  "image/png": 10 * MiB,
  "image/webp": 10 * MiB,
  "image/gif": 10 * MiB,
  "application/pdf": 25 * MiB
}
/** Maximum size in bytes of any file. */
export const largestAttachment = Math.max(...Object.values(sizeLimits))

/** Number of bytes that {@link typeOf} needs to detect every type. */
export const signatureLength = 12

const hasTextAt = (head: Uint8Array, from: number, text: string) =>
  Array.from(text).every((character, index) => head[from + index] === character.charCodeAt(0))

/** The type detected from the first bytes of a file; null if it is not an allowed type. */
export const typeOf = (head: Uint8Array): AttachmentType | null => {
  if (head[0] === 0xff && head[1] === 0xd8 && head[2] === 0xff) return "image/jpeg"
  if (head[0] === 0x89 && hasTextAt(head, 1, "PNG\r\n\u001a\n")) return "image/png"
  if (hasTextAt(head, 0, "RIFF") && hasTextAt(head, 8, "WEBP")) return "image/webp"
  if (hasTextAt(head, 0, "GIF87a") || hasTextAt(head, 0, "GIF89a")) return "image/gif"
  return hasTextAt(head, 0, "%PDF-") ? "application/pdf" : null
}

/** True if the declared type matches the detected one. */
export const matchesDeclaredType = (declared: string, type: AttachmentType): boolean => {
  const [name = ""] = declared.split(";")
  const declaredType = name.trim().toLowerCase()
  return (
    declaredType === type ||
    (type === "image/jpeg" && (declaredType === "image/jpg" || declaredType === "image/pjpeg"))
  )
}

/** A file as stored in the message's row. */
export const StoredAttachment = Schema.Struct({
  artifact: ArtifactRef,
  mimeType: Schema.String,
  name: Schema.String,
  size: Schema.Int
})
export type StoredAttachment = typeof StoredAttachment.Type
