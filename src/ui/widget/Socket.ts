/** The conversation's realtime socket: reconnects with increasing pauses until it is closed. */
import type { Frame as Declared } from "../../domain/conversations/RealtimeFrame.ts"

type Frame = typeof Declared.Encoded

interface Access {
  readonly token: string
  readonly url: string
  readonly lastMessageId: string
}

/** Milliseconds; a server that is back is found within ten seconds. */
const firstPauseMs = 1_000
const maxPauseMs = 8_000

/**
 * `access` is called before each attempt, because tokens are valid for an hour. Null means to try later. `on` gets
 * every frame. Returns a function that closes the socket.
 */
export const connect = (access: () => Promise<Access | null>, on: (frame: Frame) => void) => {
  let ended = false
  let pause = firstPauseMs
  let socket: WebSocket | null = null
  let timer: ReturnType<typeof setTimeout> | undefined

  const scheduleReconnect = () => {
    if (ended) return
    timer = setTimeout(() => void attempt(), pause * (0.5 + Math.random() / 2))
    pause = Math.min(pause * 2, maxPauseMs)
  }

  const attempt = async () => {
    const given = await access().catch(() => null)
    if (ended) return
    if (given === null) return scheduleReconnect()
    const address = `${given.url}?lastMessageId=${encodeURIComponent(given.lastMessageId)}`
    try {
      socket = new WebSocket(address, [`spoke.${given.token}`])
    } catch {
      return scheduleReconnect()
    }
    socket.addEventListener("message", ({ data }) => {
      pause = firstPauseMs
      try {
        const frame: Frame = JSON.parse(String(data))
        on(frame)
      } catch {
        // Invalid frames are ignored.
      }
    })
    socket.addEventListener("close", scheduleReconnect)
  }

  void attempt()
  return () => {
    ended = true
    clearTimeout(timer)
    socket?.close()
  }
}
