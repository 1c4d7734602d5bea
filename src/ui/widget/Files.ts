/** Checks files before they are sent. */
import type { AttachmentType } from "../../domain/channels/Attachment.ts"
import type { Texts } from "./Texts.ts"

const megabyte = 1_048_576
const maxFiles = 10

/** Most bytes of a file by its type. */
const sizeLimits: Readonly<Record<string, number>> = {
  "image/jpeg": 10 * megabyte,
  "image/png": 10 * megabyte,
  "image/webp": 10 * megabyte,
  "image/gif": 10 * megabyte,
  "application/pdf": 25 * megabyte
} satisfies Record<AttachmentType, number>

export const accepted = Object.keys(sizeLimits).join(",")

const problemOf = ({ name, size, type }: File, texts: Texts) => {
  const limit = sizeLimits[type]
  if (limit === undefined) return texts.fileType(name)
  return size > limit ? texts.fileSize(name) : null
}

/** The files plus the valid ones of `more`, and the error of the first invalid one. */
export const added = (files: ReadonlyArray<File>, more: ReadonlyArray<File>, texts: Texts) => {
  const problems = more.map((file) => problemOf(file, texts))
  const all = [...files, ...more.filter((_, place) => problems[place] === null)]
  const problem = problems.find((found) => found !== null) ?? (all.length > maxFiles ? texts.fileCount : null)
  return { files: all.slice(0, maxFiles), problem }
}
