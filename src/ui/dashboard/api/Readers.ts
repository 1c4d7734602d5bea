/** The registered source readers, with the forms of their settings. */
import { queryOptions } from "@tanstack/react-query"
import type { FormField, ReaderForm, Words } from "../../../domain/knowledge/SourceReader.ts"
import { call } from "./Client.ts"

export type Reader = typeof ReaderForm.Encoded
export type ReaderField = typeof FormField.Encoded
export type ReaderTexts = typeof Words.Encoded

/** Readers change only with a new version of the service. */
export const readers = queryOptions({
  queryKey: ["source-readers"],
  queryFn: ({ signal }) =>
    call<{ readonly readers: ReadonlyArray<Reader> }>("GET", "/api/source-readers", { signal }),
  staleTime: Infinity
})
