/** The realtime socket of the open conversation. */
import { useEffect, useState } from "react"
import type { Frame as RealtimeFrame } from "../../../../domain/conversations/RealtimeFrame.ts"
import { socketAccess } from "../../api/Conversations.ts"
import type { RunEvent } from "../../components/replies/Trace.tsx"

type Frame = typeof RealtimeFrame.Encoded

/** Minimum and maximum pause before reconnecting, in milliseconds. */
const reconnectDelayMs = { min: 1_000, max: 8_000 }
/** How long a typing indicator is shown without a further one. */
const typingTimeoutMs = 8_000

const parseFrame = (text: unknown): Frame | null => {
  if (typeof text !== "string") return null
  try {
    const frame: Frame = JSON.parse(text)
    return frame
  } catch {
    return null
  }
}

export interface Live {
  /** False while the socket is disconnected. */
  readonly connected: boolean
  /** Who is typing; null for nobody. */
  readonly typing: "agent" | "customer" | "team" | null
  /** Events of the running turn, or of the last one. */
  readonly events: ReadonlyArray<RunEvent>
}

const disconnected: Live = { connected: false, typing: null, events: [] }

/** `onChange` is called when messages or the state may have changed. */
export const useLive = (id: string, onChange: () => void): Live => {
  const [live, setLive] = useState(disconnected)
  useEffect(() => {
    const controller = new AbortController()
    let socket: WebSocket | null = null
    let reconnectTimer: ReturnType<typeof setTimeout> | undefined
    let typingTimer: ReturnType<typeof setTimeout> | undefined
    let reconnectMs = reconnectDelayMs.min

    const handleFrame = (frame: Frame) => {
      if (frame.type === "typing") {
        clearTimeout(typingTimer)
        typingTimer = setTimeout(() => setLive((before) => ({ ...before, typing: null })), typingTimeoutMs)
        const { by = "agent" } = frame
        setLive((before) => ({ ...before, typing: by }))
      }
      if (frame.type === "run.event") {
        const { event } = frame
        const ended = event.type === "run.completed" || event.type === "run.failed"
        setLive((before) => ({
          ...before,
          typing: ended ? null : before.typing,
          events: [
            ...before.events.filter(({ id, runId }) => runId === event.runId && id !== event.id),
            event
          ]
        }))
        if (ended) onChange()
      }
      if (frame.type === "message.created" || frame.type === "conversation.updated") {
        setLive((before) => ({ ...before, typing: null }))
        onChange()
      }
    }

    const scheduleReconnect = () => {
      if (controller.signal.aborted) return
      setLive((before) => ({ ...before, connected: false, typing: null }))
      reconnectTimer = setTimeout(() => void connect(), reconnectMs)
      reconnectMs = Math.min(reconnectMs * 2, reconnectDelayMs.max)
    }

    const connect = async () => {
      const access = await socketAccess(id, controller.signal).catch(() => null)
      if (controller.signal.aborted) return
      if (access === null) return scheduleReconnect()
      socket = new WebSocket(access.realtimeUrl, [`spoke.${access.realtimeToken}`])
      socket.onopen = () => {
        reconnectMs = reconnectDelayMs.min
        setLive((before) => ({ ...before, connected: true }))
        // Loads the changes from before the socket was open.
        onChange()
      }
      socket.onmessage = ({ data }) => {
        const frame = parseFrame(data)
        if (frame !== null) handleFrame(frame)
      }
      socket.onclose = scheduleReconnect
    }

    setLive(disconnected)
    void connect()
    return () => {
      controller.abort()
      clearTimeout(reconnectTimer)
      clearTimeout(typingTimer)
      if (socket !== null) {
        socket.onclose = null
        socket.close()
      }
    }
  }, [id, onChange])
  return live
}
