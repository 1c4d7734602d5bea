/** Which files may be sent, checked before anything leaves the page. */
import type { Texts } from "./Texts.ts"

const megabyte = 1_048_576
const images: ReadonlyArray<string> = ["image/jpeg", "image/png", "image/webp", "image/gif"]
const most = 10

export const accepted = [...images, "application/pdf"].join(",")

const problemOf = ({ name, size, type }: File, texts: Texts) => {
  const image = images.includes(type)
  if (!image && type !== "application/pdf") return texts.fileType(name)
  return size > (image ? 10 : 25) * megabyte ? texts.fileSize(name) : null
}

/** The files with those of `more` that may go along, and what is wrong with the first of the others. */
export const added = (files: ReadonlyArray<File>, more: ReadonlyArray<File>, texts: Texts) => {
  const problems = more.map((file) => problemOf(file, texts))
  const all = [...files, ...more.filter((_, place) => problems[place] === null)]
  const problem = problems.find((found) => found !== null) ?? (all.length > most ? texts.fileCount : null)
  return { files: all.slice(0, most), problem }
}
