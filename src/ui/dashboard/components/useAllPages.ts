import type { InfiniteData } from "@tanstack/react-query"
import { useEffect } from "react"

interface Query<Page> {
  readonly data: InfiniteData<Page> | undefined
  readonly hasNextPage: boolean
  readonly isFetching: boolean
  readonly isFetchNextPageError: boolean
  readonly fetchNextPage: (options: { readonly cancelRefetch: boolean }) => Promise<unknown>
}

/** Loads all pages of a list. Returns the rows that are loaded so far; undefined before the first page. */
export const useAllPages = <Page, Row>(
  { data, fetchNextPage, hasNextPage, isFetching, isFetchNextPageError }: Query<Page>,
  rowsOf: (page: Page) => ReadonlyArray<Row>
): ReadonlyArray<Row> | undefined => {
  useEffect(() => {
    // Another component may be loading the page already.
    if (hasNextPage && !isFetching && !isFetchNextPageError) void fetchNextPage({ cancelRefetch: false })
  }, [fetchNextPage, hasNextPage, isFetching, isFetchNextPageError])
  return data?.pages.flatMap(rowsOf)
}
