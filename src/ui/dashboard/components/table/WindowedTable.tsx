/** A table for a thousand rows and more: those in sight are rendered, and further pages are read on the way to the end. */
import { useWindowVirtualizer } from "@tanstack/react-virtual"
import { useEffect, useLayoutEffect, useRef, useState } from "react"
import { Cells, Table, TableFrame, type TableProps } from "../Table.tsx"

/** Up to this number all rows are rendered. */
const maxRendered = 100
/** Estimated height of a row in pixels, until it is measured. */
const rowHeightPx = 48
/** Rows before the end at which the next page is read. */
const moreBefore = 20

/** In place of rows that are not rendered. */
const spacer = (height: number) => ({ display: "block", height, padding: 0, border: 0 })

interface Props<A> extends TableProps<A> {
  /** Reads the next page; null if there is none, or while it is read. */
  readonly more: (() => void) | null
}

const Windowed = <A,>({ columns, keyOf, label, more, rows }: Props<A>) => {
  const body = useRef<HTMLTableSectionElement>(null)
  /** Where the rows begin in the document. What stands above them may change with any render. */
  const [top, setTop] = useState(0)
  useLayoutEffect(() => {
    if (body.current !== null) setTop(Math.round(body.current.getBoundingClientRect().top + window.scrollY))
  })
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeightPx,
    getItemKey: (index) => {
      const row = rows[index]
      return row === undefined ? index : keyOf(row)
    },
    overscan: 10,
    scrollMargin: top
  })
  const shown = virtual.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  useEffect(() => {
    if (last >= rows.length - moreBefore) more?.()
  }, [last, more, rows.length])
  const above = (shown[0]?.start ?? top) - top
  const below = virtual.getTotalSize() - ((shown.at(-1)?.end ?? top) - top)
  return (
    <TableFrame label={label} columns={columns} isFixed rowCount={rows.length + 1} body={body}>
      {above > 0 ? <tr aria-hidden style={spacer(above)} /> : null}
      {shown.map(({ index, key }) => {
        const row = rows[index]
        return row === undefined ? null : (
          <tr key={key} ref={virtual.measureElement} data-index={index} aria-rowindex={index + 2}>
            <Cells columns={columns} row={row} />
          </tr>
        )
      })}
      {below > 0 ? <tr aria-hidden style={spacer(below)} /> : null}
    </TableFrame>
  )
}

export const WindowedTable = <A,>({ more, ...table }: Props<A>) =>
  table.rows.length > maxRendered ? <Windowed {...table} more={more} /> : <Table {...table} />
