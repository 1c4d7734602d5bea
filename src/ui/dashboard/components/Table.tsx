/** A list of things in columns; on a phone each row becomes a block with its labels. */
import { PureComponent, type ReactNode } from "react"
import css from "./Table.module.css"

export interface Column<A> {
  readonly title: string
  readonly cell: (row: A) => ReactNode
  /** Numbers are aligned to the end. */
  readonly end?: boolean
  /** The title is only for screen readers, for example above buttons. */
  readonly silent?: boolean
  /** Replaces the title. */
  readonly head?: ReactNode
  /** Never broken into lines: times, and what a row can be told to do. */
  readonly whole?: boolean
  /** Says what it is by itself: on a phone such cells follow each other without titles. */
  readonly plain?: boolean
}

interface RowProps<A> {
  readonly row: A
  readonly columns: ReadonlyArray<Column<A>>
}

/** Not rendered again while `row` and `columns` are the same: a long list keeps its columns in a `useMemo`. */
class Row<A> extends PureComponent<RowProps<A>> {
  override render(): ReactNode {
    const { columns, row } = this.props
    const head = columns.findIndex(({ silent }) => silent !== true)
    return (
      <tr>
        {columns.map(({ title, cell, end, plain = false, silent = false, whole }, place) => (
          <td
            key={title}
            data-title={silent ? "" : title}
            data-plain={plain ? "" : undefined}
            data-head={place === head ? "" : undefined}
            className={`${end === true ? css["end"] : ""} ${whole === true || silent ? css["whole"] : ""} ${silent ? css["silent"] : ""}`}
          >
            {cell(row)}
          </td>
        ))}
      </tr>
    )
  }
}

export interface TableProps<A> {
  readonly label: string
  readonly columns: ReadonlyArray<Column<A>>
  readonly rows: ReadonlyArray<A>
  readonly keyOf: (row: A) => string
}

export const Table = <A,>({ label, columns, rows, keyOf }: TableProps<A>) => (
  <div className={css["frame"]}>
    <table className={css["table"]} aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ title, end, head, silent }) => (
            <th key={title} scope="col" className={end === true ? css["end"] : ""}>
              {head ?? <span className={silent === true ? "visually-hidden" : ""}>{title}</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={keyOf(row)} row={row} columns={columns} />
        ))}
      </tbody>
    </table>
  </div>
)
