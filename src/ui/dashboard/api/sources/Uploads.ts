/** Uploads of documents with their progress, and look-ups of uploaded sources. */
import type {
  SourceCreation,
  SourceItem as Item,
  SourcePage
} from "../../../../http/public/knowledge/SourcesApi.ts"
import { call, failureOf } from "../Client.ts"

interface NewUpload {
  readonly agentId: string
  /** Empty to use the file's name. */
  readonly name: string
  readonly labels: ReadonlyArray<string>
  readonly file: File
}

interface UploadOptions {
  readonly signal?: AbortSignal
  /** Called with the sent and the total bytes of the form. */
  readonly onProgress?: (sent: number, total: number) => void
}

/** Uploads one document, or one ZIP of documents. Uses XMLHttpRequest, because `fetch` does not report progress. */
export const uploadSource = (
  kind: "upload" | "bulk-upload",
  { agentId, file, labels, name }: NewUpload,
  { onProgress, signal }: UploadOptions = {}
): Promise<typeof SourceCreation.Encoded> =>
  new Promise((resolve, reject) => {
    const body = new FormData()
    body.set("agentId", agentId)
    if (labels.length > 0) body.set("labels", JSON.stringify(labels))
    if (name !== "") body.set("name", name)
    body.set("file", file)
    const request = new XMLHttpRequest()
    const abort = () => request.abort()
    const onLoad = () => {
      if (request.status >= 200 && request.status < 300) {
        const { data }: { readonly data: typeof SourceCreation.Encoded } = JSON.parse(request.responseText)
        return resolve(data)
      }
      failureOf(new Response(request.responseText, { status: request.status })).then(reject, reject)
    }
    request.open("POST", `/api/sources/${kind}`)
    request.upload.addEventListener("progress", ({ loaded, total }) => onProgress?.(loaded, total))
    request.addEventListener("load", onLoad)
    request.addEventListener("error", () => reject(new TypeError("The request did not arrive.")))
    request.addEventListener("abort", () => reject(new DOMException("Aborted", "AbortError")))
    request.addEventListener("loadend", () => signal?.removeEventListener("abort", abort))
    signal?.addEventListener("abort", abort)
    if (signal?.aborted === true) return abort()
    request.send(body)
  })

/** The agent's source whose uploaded original has this content (`sha256:…`); undefined if there is none. */
export const sourceWithContent = async (
  agentId: string,
  artifact: string
): Promise<typeof Item.Encoded | undefined> => {
  const { sources } = await call<typeof SourcePage.Encoded>("GET", "/api/sources", {
    query: { agentId, artifact, limit: 1 }
  })
  return sources[0]
}

/** The agent's sources with these ids. Deleted ones are missing. */
export const sourcesOf = async (
  agentId: string,
  ids: ReadonlySet<string>
): Promise<ReadonlyMap<string, typeof Item.Encoded>> => {
  const found = new Map<string, typeof Item.Encoded>()
  let cursor: string | null = null
  do {
    const page: typeof SourcePage.Encoded = await call<typeof SourcePage.Encoded>("GET", "/api/sources", {
      query: { agentId, limit: 100, cursor }
    })
    for (const one of page.sources) if (ids.has(one.id)) found.set(one.id, one)
    cursor = page.nextCursor
  } while (cursor !== null && found.size < ids.size)
  return found
}
