/** Files that the visitor adds to a message. They are checked before they are sent. */
import { maxAttachments, sizeLimits } from "../MessageLimits.ts"
import type { Texts } from "./Texts.ts"

/** Dragged files. Dragged text is left to the field. */
export const bringsFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes("Files") === true

const problemOf = ({ name, size, type }: File, texts: Texts) => {
  const limit = sizeLimits[type]
  if (limit === undefined) return texts.fileType(name)
  return size > limit ? texts.fileSize(name) : null
}

/** Adds the valid ones of `newFiles`. `problem` is the error of the first invalid one, or null. */
export const addFiles = (files: ReadonlyArray<File>, newFiles: ReadonlyArray<File>, texts: Texts) => {
  const problems = newFiles.map((file) => problemOf(file, texts))
  const allFiles = [...files, ...newFiles.filter((_, index) => problems[index] === null)]
  const problem =
    problems.find((found) => found !== null) ?? (allFiles.length > maxAttachments ? texts.fileCount : null)
  return { files: allFiles.slice(0, maxAttachments), problem }
}
