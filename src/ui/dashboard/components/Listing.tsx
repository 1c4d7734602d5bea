/** A table with pagination, and a dialog for new rows. */
import type { InfiniteData } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { Button } from "./Button.tsx"
import { Dialog } from "./Dialog.tsx"
import { Loaded, type LoadedProps } from "./Page.tsx"
import { Table, type TableProps } from "./Table.tsx"
import { LoadMore } from "./LoadMore.tsx"

interface ListingProps<Page, Row> extends Omit<TableProps<Row>, "rows"> {
  readonly query: LoadedProps<InfiniteData<Page>>["query"] & {
    readonly hasNextPage: boolean
    readonly isFetchingNextPage: boolean
    readonly isFetchNextPageError: boolean
    readonly fetchNextPage: () => Promise<unknown>
  }
  readonly rowsOf: (page: Page) => ReadonlyArray<Row>
  /** Content shown while there are no rows. */
  readonly empty: ReactNode
  /** Shown above the rows. */
  readonly bar?: ReactNode
}

/**
 * True if the list has no rows. The button for a new item is then part of the empty state, not of the page's header.
 */
export const isEmptyList = <Page,>(
  { data }: { readonly data: InfiniteData<Page> | undefined },
  rowsOf: (page: Page) => ReadonlyArray<unknown>
): boolean => data !== undefined && data.pages.every((page) => rowsOf(page).length === 0)

export const Listing = <Page, Row>({
  query,
  rowsOf,
  empty,
  bar = null,
  ...table
}: ListingProps<Page, Row>) => {
  return (
    <>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap(rowsOf)
          if (rows.length === 0) return empty
          return (
            <>
              {bar}
              <Table rows={rows} {...table} />
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
