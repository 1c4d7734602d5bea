/** The conversation's realtime socket: reconnects with increasing pauses until it is closed. */
import type { Frame as Declared } from "../../domain/conversations/RealtimeFrame.ts"

type Frame = typeof Declared.Encoded

interface SocketAccess {
  readonly token: string
  readonly url: string
  readonly lastMessageId: string
}

/** Pauses between attempts to connect. */
const firstPauseMs = 1_000
const maxPauseMs = 8_000

/**
 * `getAccess` is called before each attempt, because tokens expire after an hour. If it returns null, the next attempt
 * follows later. `onFrame` gets every frame. Returns a function that closes the socket.
 */
export const connect = (getAccess: () => Promise<SocketAccess | null>, onFrame: (frame: Frame) => void) => {
  let isClosed = false
  let pauseMs = firstPauseMs
  let socket: WebSocket | null = null
  let timer: ReturnType<typeof setTimeout> | undefined

  const scheduleReconnect = () => {
    if (isClosed) return
    timer = setTimeout(() => void open(), pauseMs * (0.5 + Math.random() / 2))
    pauseMs = Math.min(pauseMs * 2, maxPauseMs)
  }

  const open = async () => {
    const credentials = await getAccess().catch(() => null)
    if (isClosed) return
    if (credentials === null) return scheduleReconnect()
    const address = `${credentials.url}?lastMessageId=${encodeURIComponent(credentials.lastMessageId)}`
    try {
      socket = new WebSocket(address, [`spoke.${credentials.token}`])
    } catch {
      return scheduleReconnect()
    }
    socket.addEventListener("message", ({ data }) => {
      pauseMs = firstPauseMs
      try {
        const frame: Frame = JSON.parse(String(data))
        onFrame(frame)
      } catch {
        // Invalid frames are ignored.
      }
    })
    socket.addEventListener("close", scheduleReconnect)
  }

  void open()
  return () => {
    isClosed = true
    clearTimeout(timer)
    socket?.close()
  }
}
