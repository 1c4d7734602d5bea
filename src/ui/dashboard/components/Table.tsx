/** A list of things in columns; on a phone each row becomes a block with its labels. */
import type { ReactNode } from "react"
import css from "./Table.module.css"

export interface Column<A> {
  readonly title: string
  readonly cell: (row: A) => ReactNode
  /** Numbers stand at the end. */
  readonly end?: boolean
}

interface TableProps<A> {
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
          {columns.map(({ title, end }) => (
            <th key={title} scope="col" className={end === true ? css["end"] : ""}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ title, cell, end }) => (
              <td key={title} data-title={title} className={end === true ? css["end"] : ""}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
