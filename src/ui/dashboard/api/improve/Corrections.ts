/** Corrections of wrong answers: drafted, previewed and approved. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query"
import type {
  Correction as Declared,
  CreateCorrection,
  PatchCorrection
} from "../../../../domain/agents/Correction.ts"
import { call, firstPage } from "../Client.ts"

export type Correction = typeof Declared.Encoded
type CorrectionRequest = typeof CreateCorrection.Encoded
type Change = typeof PatchCorrection.Encoded

/** Polling interval while a preview is running. */
const pollIntervalMs = 2_000

interface One {
  readonly correction: Correction
}
interface CorrectionPage {
  readonly corrections: ReadonlyArray<Correction>
  readonly nextCursor: string | null
}

/** Newest first. */
export const corrections = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", agentId, "corrections"],
    queryFn: ({ pageParam, signal }) =>
      call<CorrectionPage>("GET", `/api/agents/${agentId}/corrections`, {
        query: { limit: 50, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state: { data } }) =>
      data?.pages.some((page) => page.corrections.some(({ preview }) => preview?.isComplete === false)) ===
      true
        ? pollIntervalMs
        : false
  })

export const correction = (id: string) =>
  queryOptions({
    queryKey: ["corrections", id],
    queryFn: ({ signal }) =>
      call<One>("GET", `/api/corrections/${id}`, { signal }).then((data) => data.correction),
    refetchInterval: ({ state }) => (state.data?.preview?.isComplete === false ? pollIntervalMs : false)
  })

const write = <B>(method: "POST" | "PATCH", path: string, body?: B) =>
  call<One, B>(method, path, body === undefined ? {} : { body }).then((data) => data.correction)

/** Creates a draft with the team's answer, else the language model's, else empty. */
export const createCorrection = (agentId: string, body: CorrectionRequest) =>
  write("POST", `/api/agents/${agentId}/corrections`, body)

export const updateCorrection = (id: string, body: Change) => write("PATCH", `/api/corrections/${id}`, body)

/** Returns at once. Past questions are replayed in the background. */
export const previewCorrection = (id: string) => write("POST", `/api/corrections/${id}/preview`, {})

export const approveCorrection = (id: string) => write("POST", `/api/corrections/${id}/approve`)

export const deleteCorrection = (id: string) => call("DELETE", `/api/corrections/${id}`)
