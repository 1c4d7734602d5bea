/** Parses the `data:` frames of a turn's stream from arbitrary chunks. */
import type { Citation } from "../domain/chat/ChatTurn.ts"
import type { StreamPart } from "../domain/chat/StreamPart.ts"

/** The data of a citation that is sent before the stream's end. */
export type Source = Pick<typeof Citation.Encoded, "index" | "title" | "url">

/** The source in a part; null for parts of other kinds. */
export const sourceOf = (part: StreamPart): Source | null => {
  if (part.type !== "source-url" && part.type !== "source-document") return null
  const { index } = part.providerMetadata.spoke
  return { index, title: part.title, url: part.type === "source-url" ? part.url : "" }
}

const parse = (text: string): StreamPart | null => {
  try {
    const value: StreamPart | null = JSON.parse(text)
    return typeof value === "object" && value !== null && typeof value.type === "string" ? value : null
  } catch {
    return null
  }
}

/** Splits chunks of text into frames: takes a chunk, returns the complete frames. */
const framesOf = () => {
  let rest = ""
  return (piece: string): ReadonlyArray<StreamPart> => {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/u)
    rest = lines.pop() ?? ""
    return lines.flatMap((line) => {
      const part = line.startsWith("data:") ? parse(line.slice("data:".length).trim()) : null
      return part === null ? [] : [part]
    })
  }
}

/**
 * Time in milliseconds without data after which a stream counts as broken. The server sends keep-alives every 12
 * seconds.
 */
const idleTimeoutMs = 40_000

/**
 * Calls `on` for each part until the stream ends. Rejects if it breaks or times out. Keep-alives reset the time-out.
 */
export const read = async (
  body: ReadableStream<Uint8Array>,
  on: (part: StreamPart) => void,
  silence = idleTimeoutMs
): Promise<void> => {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const frames = framesOf()
  try {
    for (;;) {
      let timer: ReturnType<typeof setTimeout> | undefined
      const dead = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error("The stream fell silent.")), silence)
      })
      const { done, value } = await Promise.race([reader.read(), dead]).finally(() => clearTimeout(timer))
      if (done) return
      frames(decoder.decode(value, { stream: true })).forEach(on)
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}
