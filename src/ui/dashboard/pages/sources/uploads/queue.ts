/**
 * The uploads of this window. They go on while other pages of the dashboard are shown; leaving the dashboard warns while
 * something was not sent. A few are sent at a time.
 */
import { useSyncExternalStore } from "react"
import { ApiError, isUnknownId } from "../../../api/Client.ts"
import { onUserChange } from "../../../api/Session.ts"
import { hasActiveJob, type SourceItem, syncSource } from "../../../api/Sources.ts"
import { sourcesOf, sourceWithContent, uploadSource } from "../../../api/sources/Uploads.ts"
import { contentOf, isZip, type Refusal, refusalOf, type Selection } from "./files.ts"
import { makeListeners } from "../../../listeners.ts"

/** Maximum number of concurrent uploads. */
const maxSending = 3
/** Time between two looks at the sources that are read. */
const readingIntervalMs = 1_500

type State =
  | { readonly tag: "waiting" }
  | { readonly tag: "sending"; readonly sent: number; readonly total: number }
  | { readonly tag: "reading"; readonly progress: number }
  | { readonly tag: "ready"; readonly passages: number }
  /** Not sent, because it cannot be read. */
  | { readonly tag: "refused"; readonly why: Refusal }
  /** Not sent, because the agent or this selection has the content already. */
  | { readonly tag: "duplicate"; readonly of: string }
  /** Did not arrive. */
  | { readonly tag: "failed"; readonly problem: unknown }
  /** Arrived, but could not be read: the source's error. Null if the source was deleted. */
  | { readonly tag: "unread"; readonly error: string | null }

export interface Upload {
  readonly key: number
  /** Whose upload it is, and for which agent. */
  readonly place: UploadTarget
  readonly file: File
  readonly path: string
  /** The created source. */
  readonly sourceId: string | null
  /** True if it is sent even though the content is there. */
  readonly isForced: boolean
  /** True if its selection had more files than were taken. */
  readonly isOfCut: boolean
  readonly state: State
}

export interface UploadTarget {
  readonly userId: string
  readonly agentId: string
}

let count = 0
let uploads: ReadonlyArray<Upload> = []
const { listen, notify } = makeListeners()
/** Of those that are sent. */
const running = new Map<number, AbortController>()
/** The first upload of each content, by agent and content. */
const contents = new Map<string, number>()
let timer: ReturnType<typeof setTimeout> | undefined

const warn = (event: BeforeUnloadEvent) => event.preventDefault()
const isUnsent = ({ state }: Upload) => state.tag === "waiting" || state.tag === "sending"

const set = (next: ReadonlyArray<Upload>) => {
  uploads = next
  if (next.some(isUnsent)) window.addEventListener("beforeunload", warn)
  else window.removeEventListener("beforeunload", warn)
  notify()
}
const change = (key: number, fields: Partial<Pick<Upload, "state" | "sourceId" | "isForced">>) =>
  set(uploads.map((one) => (one.key === key ? { ...one, ...fields } : one)))
const move = (key: number, state: State) => change(key, { state })

const stateOf = (source: SourceItem | undefined): State => {
  if (source === undefined) return { tag: "unread", error: null }
  const { lastError, latestJob, status } = source
  if (hasActiveJob(source)) return { tag: "reading", progress: latestJob?.progress ?? 0 }
  if (status === "FAILED") return { tag: "unread", error: lastError ?? latestJob?.error ?? "" }
  if (status === "READY") return { tag: "ready", passages: latestJob?.chunksCreated ?? 0 }
  return { tag: "reading", progress: 0 }
}

const isReading = (upload: Upload): upload is Upload & { readonly sourceId: string } =>
  upload.state.tag === "reading" && upload.sourceId !== null

/** True if the same request is refused again, such as after the agent was deleted or the session has ended. */
const isFinal = (problem: unknown) =>
  problem instanceof ApiError && problem.status < 500 && problem.status !== 429

/** Looks at the sources that are read until all are done. */
const watch = () => {
  timer ??= setTimeout(() => {
    const reading = uploads.filter(isReading)
    const agents = [...new Set(reading.map(({ place }) => place.agentId))]
    const look = async (agentId: string) => {
      const mine = reading.filter(({ place }) => place.agentId === agentId)
      const found = await sourcesOf(agentId, new Set(mine.map(({ sourceId }) => sourceId))).catch(
        (problem: unknown) => {
          if (isFinal(problem)) for (const { key } of mine) move(key, { tag: "failed", problem })
          throw problem
        }
      )
      for (const { key, sourceId } of mine) move(key, stateOf(found.get(sourceId)))
    }
    // Other failures are repeated at the next poll.
    void Promise.allSettled(agents.map(look)).then(() => {
      timer = undefined
      if (uploads.some(isReading)) watch()
    })
  }, readingIntervalMs)
}

const contentKey = ({ place }: Upload, content: string) => `${place.agentId} ${content}`

/** Where the content is already: the name of a source, or the path of an earlier upload. Null if nowhere. */
const placeOf = async (upload: Upload, content: string): Promise<string | null> => {
  const first = contents.get(contentKey(upload, content))
  const earlier = uploads.find(({ key }) => key === first && key !== upload.key)
  if (earlier !== undefined) return earlier.path
  contents.set(contentKey(upload, content), upload.key)
  return (await sourceWithContent(upload.place.agentId, content))?.name ?? null
}

const send = async (upload: Upload, signal: AbortSignal): Promise<void> => {
  const { file, isForced, key, path, place } = upload
  const why = await refusalOf(file)
  if (why !== null) return move(key, { tag: "refused", why })
  const content = isForced ? null : await contentOf(file)
  const of = content === null ? null : await placeOf(upload, content)
  if (signal.aborted) return
  if (of !== null) return move(key, { tag: "duplicate", of })
  // Files of the same name in different folders stay apart. A source's name has at most 200 characters.
  const body = { agentId: place.agentId, file, labels: [], name: path.slice(-200).trim() }
  const onProgress = (sent: number, total: number) => move(key, { tag: "sending", sent, total })
  const { source } = await uploadSource(isZip(file) ? "bulk-upload" : "upload", body, { signal, onProgress })
  change(key, { sourceId: source.id, state: { tag: "reading", progress: 0 } })
  watch()
}

const forget = (key: number) => {
  for (const [content, first] of contents) if (first === key) contents.delete(content)
}

/** Starts as many as may be sent at a time. */
const pump = () => {
  for (const upload of uploads) {
    if (running.size >= maxSending) return
    const { file, key, state } = upload
    if (state.tag !== "waiting" || running.has(key)) continue
    const controller = new AbortController()
    running.set(key, controller)
    move(key, { tag: "sending", sent: 0, total: file.size })
    void send(upload, controller.signal)
      .catch((problem: unknown) => {
        forget(key)
        if (!controller.signal.aborted) move(key, { tag: "failed", problem })
      })
      .finally(() => {
        running.delete(key)
        pump()
      })
  }
}

const isOf = ({ agentId, userId }: UploadTarget, { place }: Upload) =>
  place.agentId === agentId && place.userId === userId

export const add = (place: UploadTarget, { files, isCut }: Selection): void => {
  const added = files.map(({ file, isUnread = false, path }): Upload => {
    count += 1
    const state: State = isUnread ? { tag: "refused", why: "unreadable" } : { tag: "waiting" }
    return { key: count, place, file, path, sourceId: null, isForced: false, isOfCut: isCut, state }
  })
  set([...uploads, ...added])
  pump()
}

/** Stops what was not sent. Sources that exist stay. */
export const cancel = (keys: ReadonlyArray<number>): void => {
  for (const key of keys) {
    running.get(key)?.abort()
    forget(key)
  }
  set(uploads.filter(({ key }) => !keys.includes(key)))
}

// They would be sent with the session of whoever signs in next.
whenUserLeaves((userId) =>
  cancel(uploads.filter(({ place }) => place.userId !== userId).map(({ key }) => key))
)

/** Sends a file again, or has its source read again. */
export const retry = ({ key, sourceId, state }: Upload): void => {
  if (sourceId === null || (state.tag === "unread" && state.error === null)) {
    change(key, { sourceId: null, state: { tag: "waiting" } })
    return pump()
  }
  move(key, { tag: "reading", progress: 0 })
  syncSource(sourceId, false).then(watch, (problem: unknown) =>
    move(key, isUnknownId(problem) ? { tag: "unread", error: null } : { tag: "failed", problem })
  )
}

/** Sends a file whose content is there already. */
export const force = (key: number): void => {
  change(key, { isForced: true, state: { tag: "waiting" } })
  pump()
}

const now = () => uploads

/** Uploads of the user to the agent, in the order in which they were chosen. */
export const useUploads = (place: UploadTarget): ReadonlyArray<Upload> =>
  useSyncExternalStore(listen, now).filter((upload) => isOf(place, upload))
