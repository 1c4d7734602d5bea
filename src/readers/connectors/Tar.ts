/** Reads tar archives (ustar, pax and GNU names) as a stream, and buffers only the wanted files. */

const blockBytes = 512

export interface TarVisitor {
  /** Whether a regular file is to be buffered completely. */
  readonly wants: (name: string, size: number) => boolean
  readonly file: (name: string, bytes: Uint8Array) => void
}

const isEmpty = (header: Uint8Array): boolean => header.every((byte) => byte === 0)

const textOf = (bytes: Uint8Array): string => {
  const end = bytes.indexOf(0)
  return new TextDecoder().decode(end === -1 ? bytes : bytes.subarray(0, end))
}

/** Parses octal digits; null where there are none. */
const sizeOf = (header: Uint8Array): number | null => {
  const digits = textOf(header.subarray(124, 136)).trim()
  return /^[0-7]{1,11}$/u.test(digits) ? Number.parseInt(digits, 8) : null
}

const nameOf = (header: Uint8Array): string => {
  const name = textOf(header.subarray(0, 100))
  const isUstar = textOf(header.subarray(257, 262)) === "ustar"
  const prefix = isUstar ? textOf(header.subarray(345, 500)) : ""
  return prefix === "" ? name : `${prefix}/${name}`
}

/** The `path` of pax records, each `<length> <key>=<value>\n`. */
const paxPath = (bytes: Uint8Array): string | undefined =>
  /(?:^|\n)\d{1,9} path=([^\n]*)\n/u.exec(textOf(bytes))?.[1]

/** Maximum size of a separate header with a name, in bytes. */
const maxNameBytes = 64 * 1024

/** Reads the archive's bytes in order. Returns false once they turn out not to be a tar archive. */
export const makeTar = ({ file, wants }: TarVisitor) => {
  const header = new Uint8Array(blockBytes)
  let filled = 0
  let longName: string | undefined
  let body:
    | { readonly name: string; readonly type: string; bytes: Uint8Array | null; at: number; size: number }
    | undefined
  let padding = 0

  const endBody = () => {
    if (body === undefined) return
    const { bytes, name, type } = body
    if (bytes !== null) {
      if (type === "x") longName = paxPath(bytes)
      else if (type === "L") longName = textOf(bytes)
      else file(name, bytes)
    }
    padding = (blockBytes - (body.size % blockBytes)) % blockBytes
    body = undefined
  }

  const beginBody = (): boolean => {
    filled = 0
    if (isEmpty(header)) return true
    const size = sizeOf(header)
    if (size === null) return false
    const type = String.fromCharCode(header[156] ?? 0)
    const isNameHeader = type === "x" || type === "L"
    const name = longName ?? nameOf(header)
    if (!isNameHeader && type !== "g") longName = undefined
    const isBuffered = isNameHeader
      ? size <= maxNameBytes
      : (type === "0" || type === "\0") && wants(name, size)
    body = { name, type, bytes: isBuffered ? new Uint8Array(size) : null, at: 0, size }
    if (size === 0) endBody()
    return true
  }

  return (chunk: Uint8Array): boolean => {
    for (let at = 0; at < chunk.length;) {
      if (body !== undefined) {
        const part = chunk.subarray(at, at + body.size - body.at)
        body.bytes?.set(part, body.at)
        body.at += part.length
        at += part.length
        if (body.at === body.size) endBody()
      } else if (padding > 0) {
        const skipped = Math.min(padding, chunk.length - at)
        padding -= skipped
        at += skipped
      } else {
        const part = chunk.subarray(at, at + blockBytes - filled)
        header.set(part, filled)
        filled += part.length
        at += part.length
        if (filled === blockBytes && !beginBody()) return false
      }
    }
    return true
  }
}
