/** A list of things in columns; on a phone each row becomes a block with its labels. */
import type { ReactNode, Ref } from "react"
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
  /** Width in a table with rows that are not all rendered; default: what the others leave. */
  readonly width?: string
}

export interface TableProps<A> {
  readonly label: string
  readonly columns: ReadonlyArray<Column<A>>
  readonly rows: ReadonlyArray<A>
  readonly keyOf: (row: A) => string
}

interface FrameProps<A> extends Pick<TableProps<A>, "label" | "columns"> {
  /** Columns have fixed widths: rows come and go. */
  readonly isFixed?: boolean
  /** Number of rows with the head, if not all are rendered. */
  readonly rowCount?: number
  readonly body?: Ref<HTMLTableSectionElement>
  readonly children: ReactNode
}

/** The table around its rows. */
export const TableFrame = <A,>({
  body,
  children,
  columns,
  isFixed = false,
  label,
  rowCount
}: FrameProps<A>) => (
  <div className={css["frame"]}>
    <table
      className={`${css["table"]} ${isFixed ? css["fixed"] : ""}`}
      aria-label={label}
      aria-rowcount={rowCount}
    >
      <thead>
        <tr {...(rowCount === undefined ? {} : { "aria-rowindex": 1 })}>
          {columns.map(({ title, end, head, silent, width }) => (
            <th
              key={title}
              scope="col"
              className={end === true ? css["end"] : ""}
              {...(isFixed && width !== undefined ? { style: { width } } : {})}
            >
              {head ?? <span className={silent === true ? "visually-hidden" : ""}>{title}</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={body}>{children}</tbody>
    </table>
  </div>
)

/** The cells of one row. */
export const Cells = <A,>({
  columns,
  row
}: {
  readonly columns: ReadonlyArray<Column<A>>
  readonly row: A
}) =>
  columns.map(({ title, cell, end, silent, whole }) => (
    <td
      key={title}
      data-title={silent === true ? "" : title}
      className={`${end === true ? css["end"] : ""} ${whole === true || silent === true ? css["whole"] : ""}`}
    >
      {cell(row)}
    </td>
  ))

export const Table = <A,>({ label, columns, rows, keyOf }: TableProps<A>) => (
  <TableFrame label={label} columns={columns}>
    {rows.map((row) => (
      <tr key={keyOf(row)}>
        <Cells columns={columns} row={row} />
      </tr>
    ))}
  </TableFrame>
)
