/** Checks files before they are sent. */
import { maxAttachments, sizeLimits } from "../AttachmentLimits.ts"
import type { Texts } from "./Texts.ts"

const problemOf = ({ name, size, type }: File, texts: Texts) => {
  const limit = sizeLimits[type]
  if (limit === undefined) return texts.fileType(name)
  return size > limit ? texts.fileSize(name) : null
}

/** The files plus the valid ones of `more`, and the error of the first invalid one. */
export const added = (files: ReadonlyArray<File>, more: ReadonlyArray<File>, texts: Texts) => {
  const problems = more.map((file) => problemOf(file, texts))
  const all = [...files, ...more.filter((_, place) => problems[place] === null)]
  const problem =
    problems.find((found) => found !== null) ?? (all.length > maxAttachments ? texts.fileCount : null)
  return { files: all.slice(0, maxAttachments), problem }
}
