/** The content of a source: documents, passages, citing turns, and exclusions. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query"
import type {
  Passage as DeclaredPassage,
  PassageSearch,
  SourceDocument as DeclaredDocument
} from "../../../../domain/knowledge/Content.ts"
import type {
  Citations,
  DocumentContent,
  DocumentPage,
  ExcludedPassage,
  FoundPassages
} from "../../../../http/hosted/knowledge/ContentsApi.ts"
import { call, firstPage } from "../Client.ts"

export type SourceDocument = typeof DeclaredDocument.Encoded
export type Passage = typeof DeclaredPassage.Encoded

/** `synced` identifies the sync that read the documents. Another sync makes the query fetch them again. */
export const documents = (sourceId: string, q: string, synced: string) =>
  infiniteQueryOptions({
    queryKey: ["sources", "one", sourceId, "documents", q, synced],
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      call<typeof DocumentPage.Encoded>("GET", `/api/sources/${sourceId}/documents`, {
        query: { q, limit: 50, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

export const document = (sourceId: string, id: string) =>
  infiniteQueryOptions({
    queryKey: ["sources", "one", sourceId, "document", id],
    queryFn: ({ pageParam, signal }) =>
      call<typeof DocumentContent.Encoded>("GET", `/api/sources/${sourceId}/documents/${id}`, {
        query: { limit: 50, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

export const citations = (sourceId: string, passageId: string) =>
  queryOptions({
    queryKey: ["sources", "one", sourceId, "citations", passageId],
    queryFn: ({ signal }) =>
      call<typeof Citations.Encoded>("GET", `/api/sources/${sourceId}/passages/${passageId}/citations`, {
        signal
      })
  })

export const setExcluded = (sourceId: string, passageId: string, excluded: boolean) =>
  call<typeof ExcludedPassage.Encoded>(
    "POST",
    `/api/sources/${sourceId}/passages/${passageId}/${excluded ? "exclude" : "restore"}`
  )

export const searchPassages = (agentId: string, body: typeof PassageSearch.Encoded) =>
  call<typeof FoundPassages.Encoded, typeof PassageSearch.Encoded>(
    "POST",
    `/api/agents/${agentId}/passages/search`,
    { body }
  )
