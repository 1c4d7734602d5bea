/**
 * The uploads of this window, of which a few are sent at a time. They continue while other pages of the dashboard are
 * shown. The browser warns before the dashboard is left with unsent files.
 */
import { useSyncExternalStore } from "react"
import { ApiError, isUnknownId } from "../../../api/Client.ts"
import { onUserChange } from "../../../api/Session.ts"
import { hasActiveJob, type SourceItem, syncSource } from "../../../api/Sources.ts"
import { sourcesOf, sourceWithContent, uploadSource } from "../../../api/sources/Uploads.ts"
import { contentDigest, isZip, type Refusal, refusalOf, type Selection } from "./files.ts"
import { makeListeners } from "../../../listeners.ts"

/** Maximum number of concurrent uploads. */
const maxConcurrentUploads = 3
/** Milliseconds between two polls of the sources that are being read. */
const pollIntervalMs = 1_500

type State =
  | { readonly tag: "waiting" }
  | { readonly tag: "sending"; readonly sent: number; readonly total: number }
  | { readonly tag: "reading"; readonly progress: number }
  | { readonly tag: "ready"; readonly passages: number }
  /** Not sent, because it cannot be read. */
  | { readonly tag: "refused"; readonly why: Refusal }
  /** Not sent, because the agent or an earlier upload has the content already. */
  | { readonly tag: "duplicate"; readonly of: string }
  /** Sending it failed. */
  | { readonly tag: "failed"; readonly problem: unknown }
  /** Sent, but not readable: the error of the source; null if the source was deleted. */
  | { readonly tag: "unread"; readonly error: string | null }

export interface Upload {
  readonly key: number
  /** The user who uploads, and the agent that gets the source. */
  readonly target: UploadTarget
  readonly file: File
  readonly path: string
  /** The created source. */
  readonly sourceId: string | null
  /** True if it is sent although the agent has the content already. */
  readonly isForced: boolean
  /** True if its selection had more files than the maximum, which were left out. */
  readonly isSelectionTruncated: boolean
  readonly state: State
}

export interface UploadTarget {
  readonly userId: string
  readonly agentId: string
}

let count = 0
let uploads: ReadonlyArray<Upload> = []
const { listen, notify } = makeListeners()
/** Abort controllers of the uploads that are being sent, by key. */
const controllers = new Map<number, AbortController>()
/** Key of the first upload of each content, by agent and digest. */
const firstUploads = new Map<string, number>()
let pollTimer: ReturnType<typeof setTimeout> | undefined

const warnBeforeLeaving = (event: BeforeUnloadEvent) => event.preventDefault()
const isUnsent = ({ state }: Upload) => state.tag === "waiting" || state.tag === "sending"

const setUploads = (next: ReadonlyArray<Upload>) => {
  uploads = next
  if (next.some(isUnsent)) window.addEventListener("beforeunload", warnBeforeLeaving)
  else window.removeEventListener("beforeunload", warnBeforeLeaving)
  notify()
}
const change = (key: number, fields: Partial<Pick<Upload, "state" | "sourceId" | "isForced">>) =>
  setUploads(uploads.map((one) => (one.key === key ? { ...one, ...fields } : one)))
const setUploadState = (key: number, state: State) => change(key, { state })

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

/** True if a retry would fail, too, for example because the agent was deleted or the session has ended. */
const isPermanent = (problem: unknown) =>
  problem instanceof ApiError && problem.status < 500 && problem.status !== 429

/** Polls the sources that are being read until all are done. */
const pollSources = () => {
  pollTimer ??= setTimeout(() => {
    const reading = uploads.filter(isReading)
    const agents = [...new Set(reading.map(({ target }) => target.agentId))]
    const pollAgent = async (agentId: string) => {
      const agentUploads = reading.filter(({ target }) => target.agentId === agentId)
      const sources = await sourcesOf(agentId, new Set(agentUploads.map(({ sourceId }) => sourceId))).catch(
        (problem: unknown) => {
          if (isPermanent(problem))
            for (const { key } of agentUploads) setUploadState(key, { tag: "failed", problem })
          throw problem
        }
      )
      for (const { key, sourceId } of agentUploads) setUploadState(key, stateOf(sources.get(sourceId)))
    }
    // Other failures are repeated at the next poll.
    void Promise.allSettled(agents.map(pollAgent)).then(() => {
      pollTimer = undefined
      if (uploads.some(isReading)) pollSources()
    })
  }, pollIntervalMs)
}

const contentKey = ({ target }: Upload, content: string) => `${target.agentId} ${content}`

/** The name of a source, or the path of an earlier upload, with the same content; null if there is none. */
const duplicateOf = async (upload: Upload, content: string): Promise<string | null> => {
  const first = firstUploads.get(contentKey(upload, content))
  const earlier = uploads.find(({ key }) => key === first && key !== upload.key)
  if (earlier !== undefined) return earlier.path
  firstUploads.set(contentKey(upload, content), upload.key)
  return (await sourceWithContent(upload.target.agentId, content))?.name ?? null
}

const send = async (upload: Upload, signal: AbortSignal): Promise<void> => {
  const { file, isForced, key, path, target } = upload
  const why = await refusalOf(file)
  if (why !== null) return setUploadState(key, { tag: "refused", why })
  const content = isForced ? null : await contentDigest(file)
  const of = content === null ? null : await duplicateOf(upload, content)
  if (signal.aborted) return
  if (of !== null) return setUploadState(key, { tag: "duplicate", of })
  // Files of the same name in different folders stay apart. A source's name has at most 200 characters.
  const body = { agentId: target.agentId, file, labels: [], name: path.slice(-200).trim() }
  const onProgress = (sent: number, total: number) => setUploadState(key, { tag: "sending", sent, total })
  const { source } = await uploadSource(isZip(file) ? "bulk-upload" : "upload", body, { signal, onProgress })
  change(key, { sourceId: source.id, state: { tag: "reading", progress: 0 } })
  pollSources()
}

const forgetContent = (key: number) => {
  for (const [content, first] of firstUploads) if (first === key) firstUploads.delete(content)
}

/** Starts waiting uploads, up to the maximum number at a time. */
const startUploads = () => {
  for (const upload of uploads) {
    if (controllers.size >= maxConcurrentUploads) return
    const { file, key, state } = upload
    if (state.tag !== "waiting" || controllers.has(key)) continue
    const controller = new AbortController()
    controllers.set(key, controller)
    setUploadState(key, { tag: "sending", sent: 0, total: file.size })
    void send(upload, controller.signal)
      .catch((problem: unknown) => {
        forgetContent(key)
        if (!controller.signal.aborted) setUploadState(key, { tag: "failed", problem })
      })
      .finally(() => {
        controllers.delete(key)
        startUploads()
      })
  }
}

const isUploadTo = ({ agentId, userId }: UploadTarget, { target }: Upload) =>
  target.agentId === agentId && target.userId === userId

export const add = (target: UploadTarget, { files, isTruncated }: Selection): void => {
  const added = files.map(({ file, isUnreadable = false, path }): Upload => {
    count += 1
    const state: State = isUnreadable ? { tag: "refused", why: "unreadable" } : { tag: "waiting" }
    return {
      key: count,
      target,
      file,
      path,
      sourceId: null,
      isForced: false,
      isSelectionTruncated: isTruncated,
      state
    }
  })
  setUploads([...uploads, ...added])
  startUploads()
}

/** Removes uploads from the list, and aborts those that are being sent. Created sources stay. */
export const cancel = (keys: ReadonlyArray<number>): void => {
  for (const key of keys) {
    controllers.get(key)?.abort()
    forgetContent(key)
  }
  setUploads(uploads.filter(({ key }) => !keys.includes(key)))
}

// Otherwise they would be sent with the session of the next user.
onUserChange((userId) =>
  cancel(uploads.filter(({ target }) => target.userId !== userId).map(({ key }) => key))
)

/** Sends a file again, or has its source read again. */
export const retry = ({ key, sourceId, state }: Upload): void => {
  if (sourceId === null || (state.tag === "unread" && state.error === null)) {
    change(key, { sourceId: null, state: { tag: "waiting" } })
    return startUploads()
  }
  setUploadState(key, { tag: "reading", progress: 0 })
  syncSource(sourceId, false).then(pollSources, (problem: unknown) =>
    setUploadState(key, isUnknownId(problem) ? { tag: "unread", error: null } : { tag: "failed", problem })
  )
}

/** Sends a file although the agent has its content already. */
export const force = (key: number): void => {
  change(key, { isForced: true, state: { tag: "waiting" } })
  startUploads()
}

const currentUploads = () => uploads

/** Uploads of the user to the agent, in the order in which they were chosen. */
export const useUploads = (target: UploadTarget): ReadonlyArray<Upload> =>
  useSyncExternalStore(listen, currentUploads).filter((upload) => isUploadTo(target, upload))
