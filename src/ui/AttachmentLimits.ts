/** Limits of the files that people send with a message. The service checks them again. */
import type { AttachmentType } from "../domain/channels/Attachment.ts"

const MiB = 1_048_576

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
