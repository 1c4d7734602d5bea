/** Limits of a message that people send, and of its files. The service checks them again. */
import type { AttachmentType } from "../domain/channels/Attachment.ts"

const MiB = 1_048_576

/** Maximum number of characters of a message. An emoji is one. */
const maxMessageCharacters = 32_000

export const isTooLong = (message: string): boolean =>
  message.length > maxMessageCharacters && Array.from(message).length > maxMessageCharacters

/** Maximum size in bytes for each allowed type. */
export const sizeLimits: Readonly<Record<string, number>> = {
  "image/jpeg": 10 * MiB,
  "image/png": 10 * MiB,
  "image/webp": 10 * MiB,
  "image/gif": 10 * MiB,
  "application/pdf": 25 * MiB
} satisfies Record<AttachmentType, number>

/** The allowed types, as the attribute `accept` of a file input takes them. */
export const acceptedTypes = Object.keys(sizeLimits).join(",")

/** Maximum number of files of one message. */
export const maxAttachments = 10
