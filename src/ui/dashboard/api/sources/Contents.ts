/** The content of a source: documents, passages, citing turns, and exclusions. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query"
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
import { call, pagesOf } from "../Client.ts"

export type SourceDocument = typeof DeclaredDocument.Encoded
export type Passage = typeof DeclaredPassage.Encoded

/** `synced` identifies the sync that read the documents. Another sync makes the query fetch them again. */
export const documents = (sourceId: string, q: string, synced: string) => ({
  ...pagesOf<typeof DocumentPage.Encoded>(
    ["sources", "one", sourceId, "documents", q, synced],
    `/api/sources/${sourceId}/documents`,
    { q, limit: 50 }
  ),
  placeholderData: keepPreviousData
})

export const document = (sourceId: string, id: string) =>
  pagesOf<typeof DocumentContent.Encoded>(
    ["sources", "one", sourceId, "document", id],
    `/api/sources/${sourceId}/documents/${id}`,
    { limit: 50 }
  )

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
