/** The conversation's realtime socket: reconnects with increasing pauses until it is closed. */
import type { Frame as Declared } from "../../domain/conversations/RealtimeFrame.ts"
import { Refusal } from "./Client.ts"

type Frame = typeof Declared.Encoded

interface SocketAccess {
  readonly token: string
  readonly url: string
  readonly lastMessageId: string
}

/** Pauses between attempts to connect. */
const firstPauseMs = 1_000
const maxPauseMs = 8_000
/** The pause if the page may not read the conversation any more. */
const refusedPauseMs = 300_000
/** After this time, the socket of a hidden page may have lost its connection without notice. */
const hiddenMs = 60_000

const isRefused = (failure: unknown) =>
  failure instanceof Refusal && (failure.status === 401 || failure.status === 403)

/**
 * `getAccess` is called before each attempt, because tokens expire after an hour. If it returns null, the conversation
 * no longer exists. `onFrame` gets every frame. Returns a function that closes the socket.
 */
export const connect = (getAccess: () => Promise<SocketAccess | null>, onFrame: (frame: Frame) => void) => {
  let isClosed = false
  let pauseMs = firstPauseMs
  let socket: WebSocket | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  let hiddenAt = Number.POSITIVE_INFINITY
  /** Number of the last attempt. Events of earlier ones are ignored. */
  let lastAttempt = 0

  const openIn = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => void open(), ms * (0.5 + Math.random() / 2))
  }

  const open = async () => {
    lastAttempt += 1
    const attempt = lastAttempt
    const isOutdated = () => isClosed || attempt !== lastAttempt
    const openLater = () => {
      if (isOutdated()) return
      openIn(pauseMs)
      pauseMs = Math.min(pauseMs * 2, maxPauseMs)
    }
    clearTimeout(timer)
    socket?.close()
    const access = await getAccess().catch((failure: unknown) => (isRefused(failure) ? null : "unreachable"))
    if (isOutdated()) return
    if (access === null) return openIn(refusedPauseMs)
    if (access === "unreachable") return openLater()
    const address = `${access.url}?lastMessageId=${encodeURIComponent(access.lastMessageId)}`
    try {
      socket = new WebSocket(address, [`spoke.${access.token}`])
    } catch {
      return openLater()
    }
    socket.addEventListener("message", ({ data }) => {
      if (isOutdated()) return
      pauseMs = firstPauseMs
      try {
        const frame: Frame = JSON.parse(String(data))
        onFrame(frame)
      } catch {
        // Invalid frames are ignored.
      }
    })
    socket.addEventListener("close", openLater)
  }

  const onOnline = () => void open()
  const onVisibilityChange = () => {
    const isHidden = document.visibilityState === "hidden"
    if (!isHidden && Date.now() - hiddenAt > hiddenMs) void open()
    hiddenAt = isHidden ? Date.now() : Number.POSITIVE_INFINITY
  }
  addEventListener("online", onOnline)
  document.addEventListener("visibilitychange", onVisibilityChange)
  void open()
  return () => {
    isClosed = true
    removeEventListener("online", onOnline)
    document.removeEventListener("visibilitychange", onVisibilityChange)
    clearTimeout(timer)
    socket?.close()
  }
}
