/** Which files of a selection, a drop or a folder can be read, judged before they are sent. */

/** As the service accepts: bytes of one upload. A test compares both. */
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

/** True if at most one byte in twenty is a control character, which is what the service asks of text. */
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

/** Reference of the content as the service has it; null where the browser has no digests (pages without TLS). */
export const contentOf = async (file: File): Promise<string | null> => {
  if (!window.isSecureContext) return null
  const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer())
  return `sha256:${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`
}

/** A file, and the folders that lead to it, as `Manuals/2024/pump.pdf`. */
export interface Chosen {
  readonly file: File
  readonly path: string
  /** True for a file or folder of a drop that the browser could not read: `file` is then empty. */
  readonly isUnread?: boolean
}

export interface Selection {
  readonly files: ReadonlyArray<Chosen>
  /** True if there were more than {@link maxFiles}. */
  readonly isCut: boolean
}

/** Hidden files and what operating systems leave in folders. */
const isHidden = (path: string) =>
  path.split("/").some((part) => part.startsWith(".")) || /(^|\/)(Thumbs\.db|desktop\.ini)$/iu.test(path)

const selection = (all: ReadonlyArray<Chosen>): Selection => {
  const files = all.filter(({ path }) => !isHidden(path))
  return { files: files.slice(0, maxFiles), isCut: files.length > maxFiles }
}

/** Files of a file picker, for single files or a folder. */
export const picked = (files: FileList): Selection =>
  selection([...files].map((file) => ({ file, path: file.webkitRelativePath || file.name })))

const fileOf = (entry: FileSystemFileEntry) =>
  new Promise<File>((resolve, reject) => entry.file(resolve, reject))

/** A reader gives at most 100 entries at a time, and none at the end. */
const entriesOf = async (folder: FileSystemDirectoryEntry): Promise<ReadonlyArray<FileSystemEntry>> => {
  const reader = folder.createReader()
  const all: Array<FileSystemEntry> = []
  for (;;) {
    const some = await new Promise<ReadonlyArray<FileSystemEntry>>((resolve, reject) =>
      reader.readEntries(resolve, reject)
    )
    if (some.length === 0 || all.length > maxFiles) return all
    all.push(...some)
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory

/**
 * Files of a drop, with those of its folders. Must be called while the drop is handled. What cannot be read, such as a
 * link to nothing in a folder, leaves the others as they are.
 */
export const dropped = async ({ files, items }: DataTransfer): Promise<Selection> => {
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  if (entries.length === 0) return picked(files)
  const all: Array<Chosen> = []
  const walk = async (entry: FileSystemEntry): Promise<void> => {
    if (all.length > maxFiles) return
    const path = entry.fullPath.replace(/^\//u, "")
    if (isHidden(path)) return
    try {
      if (isFile(entry)) all.push({ file: await fileOf(entry), path })
      else if (isFolder(entry)) for (const one of await entriesOf(entry)) await walk(one)
    } catch {
      all.push({ file: new File([], entry.name), path, isUnread: true })
    }
  }
  for (const entry of entries) await walk(entry)
  return selection(all)
}
