/** Parses the `data:` frames of a turn's stream from arbitrary chunks. */
import type { Citation } from "../domain/chat/ChatTurn.ts"
import type { StreamPart } from "../domain/chat/StreamPart.ts"

/** The part of a citation that is sent while the reply streams. */
export type Source = Pick<typeof Citation.Encoded, "index" | "title" | "url">

/** The source in a part; null for parts of other kinds. */
export const sourceOf = (part: StreamPart): Source | null => {
  if (part.type !== "source-url" && part.type !== "source-document") return null
  const { index } = part.providerMetadata.spoke
  return { index, title: part.title, url: part.type === "source-url" ? part.url : "" }
}

const parsePart = (text: string): StreamPart | null => {
  try {
    const value: StreamPart | null = JSON.parse(text)
    return typeof value === "object" && value !== null && typeof value.type === "string" ? value : null
  } catch {
    return null
  }
}

/** Returns a function that takes the next chunk of text and returns the parts that it completes. */
const makeFrameParser = () => {
  let incomplete = ""
  return (chunk: string): ReadonlyArray<StreamPart> => {
    const lines = (incomplete + chunk).split(/\r\n|\n|\r(?!$)/u)
    incomplete = lines.pop() ?? ""
    return lines.flatMap((line) => {
      const part = line.startsWith("data:") ? parsePart(line.slice("data:".length).trim()) : null
      return part === null ? [] : [part]
    })
  }
}

/** Time without data after which a stream counts as broken. The server sends keep-alives every 12 seconds. */
const idleTimeoutMs = 40_000

/**
 * Calls `onPart` for each part until the stream ends. Rejects if it breaks or times out. Keep-alives reset the timeout.
 */
export const readParts = async (
  body: ReadableStream<Uint8Array>,
  onPart: (part: StreamPart) => void
): Promise<void> => {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const parseFrames = makeFrameParser()
  try {
    for (;;) {
      let timer: ReturnType<typeof setTimeout> | undefined
      const timedOut = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error("The stream timed out.")), idleTimeoutMs)
      })
      const { done, value } = await Promise.race([reader.read(), timedOut]).finally(() => clearTimeout(timer))
      if (done) return
      parseFrames(decoder.decode(value, { stream: true })).forEach(onPart)
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}
