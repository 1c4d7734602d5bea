/** The files of a picker or a drop, and checks before they are sent. */

/** Maximum bytes of one upload. A test checks that it is the limit of the service. */
export const maxUploadBytes = 50 * 1_048_576
/** Maximum number of files in one selection, so that a wrong folder does not become thousands of sources. */
export const maxFiles = 1_000

/** Extensions of files that are accepted without looking at their content. */
const acceptedExtensions = new Set(
  "pdf docx xlsx pptx epub html htm xhtml md markdown txt csv tsv json zip png jpg jpeg webp gif bmp".split(
    " "
  )
)

const extensionOf = (name: string): string => /\.([a-z0-9]{1,10})$/iu.exec(name)?.[1]?.toLowerCase() ?? ""

export const isZip = ({ name }: File): boolean => extensionOf(name) === "zip"

/** Bytes that show whether a file of another type is text. */
const sampleBytes = 4_096

/** True if at most one byte in twenty is a control character, as the service requires of text. */
const looksLikeText = async (file: File): Promise<boolean> => {
  const bytes = new Uint8Array(await file.slice(0, sampleBytes).arrayBuffer())
  const isControl = (byte: number) => byte < 9 || (byte > 13 && byte < 32 && byte !== 27) || byte === 127
  return bytes.filter(isControl).length * 20 <= bytes.length
}

export type Refusal = "too_large" | "unsupported_type" | "empty" | "unreadable"

/** Why the file is not sent; null if it is. */
export const refusalOf = async (file: File): Promise<Refusal | null> => {
  if (file.size > maxUploadBytes) return "too_large"
  if (file.size === 0) return "empty"
  if (acceptedExtensions.has(extensionOf(file.name))) return null
  return looksLikeText(file).then(
    (isText) => (isText ? null : "unsupported_type"),
    () => "unreadable"
  )
}

/** The digest by which the service identifies the content; null without TLS, where the browser computes none. */
export const contentDigest = async (file: File): Promise<string | null> => {
  if (!window.isSecureContext) return null
  const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer())
  return `sha256:${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`
}

/** A file with its path in the selected folders, for example `Manuals/2024/pump.pdf`. */
export interface SelectedFile {
  readonly file: File
  readonly path: string
  /** True if the browser could not read the file or folder. `file` is then empty. */
  readonly isUnreadable?: boolean
}

export interface Selection {
  readonly files: ReadonlyArray<SelectedFile>
  /** True if there were more than {@link maxFiles}. */
  readonly isTruncated: boolean
}

/** Hidden files, and files that operating systems create in folders. */
const isHidden = (path: string) =>
  path.split("/").some((part) => part.startsWith(".")) || /(^|\/)(Thumbs\.db|desktop\.ini)$/iu.test(path)

const selectionOf = (all: ReadonlyArray<SelectedFile>): Selection => {
  const files = all.filter(({ path }) => !isHidden(path))
  return { files: files.slice(0, maxFiles), isTruncated: files.length > maxFiles }
}

/** Files of a file picker, for single files or a folder. */
export const selectionFromPicker = (files: FileList): Selection =>
  selectionOf([...files].map((file) => ({ file, path: file.webkitRelativePath || file.name })))

const fileOf = (entry: FileSystemFileEntry) =>
  new Promise<File>((resolve, reject) => entry.file(resolve, reject))

/** All entries of a folder. A reader returns at most 100 at a time, and none at the end. */
const entriesOf = async (folder: FileSystemDirectoryEntry): Promise<ReadonlyArray<FileSystemEntry>> => {
  const reader = folder.createReader()
  const all: Array<FileSystemEntry> = []
  for (;;) {
    const batch = await new Promise<ReadonlyArray<FileSystemEntry>>((resolve, reject) =>
      reader.readEntries(resolve, reject)
    )
    if (batch.length === 0 || all.length > maxFiles) return all
    all.push(...batch)
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory

/**
 * Files of a drop, including those of its folders. Must be called during the drop event. An entry that cannot be read,
 * for example a broken link, does not prevent the others.
 */
export const selectionFromDrop = async ({ files, items }: DataTransfer): Promise<Selection> => {
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  if (entries.length === 0) return selectionFromPicker(files)
  const all: Array<SelectedFile> = []
  const walk = async (entry: FileSystemEntry): Promise<void> => {
    if (all.length > maxFiles) return
    const path = entry.fullPath.replace(/^\//u, "")
    if (isHidden(path)) return
    try {
      if (isFile(entry)) all.push({ file: await fileOf(entry), path })
      else if (isFolder(entry)) for (const child of await entriesOf(entry)) await walk(child)
    } catch {
      all.push({ file: new File([], entry.name), path, isUnreadable: true })
    }
  }
  for (const entry of entries) await walk(entry)
  return selectionOf(all)
}
