/** A table with pagination and search, and a dialog for new rows. */
import type { InfiniteData } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Dialog } from "./Dialog.tsx"
import { TextField } from "./Field.tsx"
import { Loaded, type LoadedProps } from "./Page.tsx"
import { Table, type TableProps } from "./Table.tsx"
import { LoadMore } from "./LoadMore.tsx"
import { useAllPages } from "./useAllPages.ts"
import css from "./Table.module.css"

/** Lists with more rows can be searched. */
const minSearchedRows = 20

interface ListingProps<Page, Row> extends Omit<TableProps<Row>, "rows"> {
  readonly query: LoadedProps<InfiniteData<Page>>["query"] & {
    readonly hasNextPage: boolean
    readonly isFetchingNextPage: boolean
    readonly isFetchNextPageError: boolean
    readonly fetchNextPage: (options?: { readonly cancelRefetch: boolean }) => Promise<unknown>
  }
  readonly rowsOf: (page: Page) => ReadonlyArray<Row>
  /** Content shown while there are no rows. */
  readonly empty: ReactNode
  /** The text of a row in which a search looks. A search loads all pages. Without it, there is no search. */
  readonly textOf?: (row: Row) => string
}

/**
 * True if the list has no rows. The button for a new item is then part of the empty state, not of the page's header.
 */
export const isEmptyList = <Page,>(
  { data }: { readonly data: InfiniteData<Page> | undefined },
  rowsOf: (page: Page) => ReadonlyArray<unknown>
): boolean => data !== undefined && data.pages.every((page) => rowsOf(page).length === 0)

export const Listing = <Page, Row>({ query, rowsOf, empty, textOf, ...table }: ListingProps<Page, Row>) => {
  const t = useText(commonTexts)
  const [search, setSearch] = useState("")
  const wanted = search.trim().toLowerCase()
  useAllPages({ ...query, hasNextPage: query.hasNextPage && wanted !== "" }, rowsOf)
  return (
    <>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap(rowsOf)
          if (rows.length === 0) return empty
          const shown =
            textOf === undefined || wanted === ""
              ? rows
              : rows.filter((row) => textOf(row).toLowerCase().includes(wanted))
          return (
            <>
              {textOf === undefined || (rows.length < minSearchedRows && search === "") ? null : (
                <div role="search" className={css["search"]}>
                  <TextField
                    compact
                    type="search"
                    label={t.search}
                    placeholder={t.search}
                    value={search}
                    onChange={setSearch}
                  />
                </div>
              )}
              {shown.length === 0 ? (
                <p role="status">{query.hasNextPage ? t.loading : t.noMatch}</p>
              ) : (
                <Table rows={shown} {...table} />
              )}
            </>
          )
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  )
}

interface CreateDialogOptions {
  /** Label of the button and title of the dialog. */
  readonly title: string
  /** True if the button is not the primary action of the page. */
  readonly isPlain?: boolean
  readonly form: (close: () => void) => ReactNode
  /** For forms with many fields. */
  readonly wide?: boolean
}

/** The button that opens the form for a new item, and its dialog. */
export const useCreateDialog = ({ title, form, isPlain = false, wide = false }: CreateDialogOptions) => {
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  return {
    button: (
      <Button kind={isPlain ? "plain" : "primary"} onClick={() => setOpen(true)}>
        {title}
      </Button>
    ),
    dialog: (
      <Dialog title={title} isOpen={isOpen} onClose={close} wide={wide}>
        {form(close)}
      </Dialog>
    )
  }
}
