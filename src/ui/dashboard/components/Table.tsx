/** A table. On phones, each row becomes a block with the titles of its columns. */
import { PureComponent, type ReactNode } from "react"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import css from "./Table.module.css"

export interface Column<A> {
  readonly title: string
  readonly cell: (row: A) => ReactNode
  /** For numbers. */
  readonly alignEnd?: boolean
  /** Shows the title only to screen readers, for example above buttons. */
  readonly hideTitle?: boolean
  /** Replaces the title in the header. */
  readonly header?: ReactNode
  /** The cell is not broken into lines, for example a time. */
  readonly noWrap?: boolean
  /** On phones, the cell has no title, because its content needs none. */
  readonly untitledOnPhone?: boolean
}

interface RowProps<A> {
  readonly row: A
  readonly columns: ReadonlyArray<Column<A>>
}

/** Only rendered again if `row` or `columns` change. Long lists keep their columns in a `useMemo`. */
class Row<A> extends PureComponent<RowProps<A>> {
  override render(): ReactNode {
    const { columns, row } = this.props
    const numberCount = columns.filter(
      ({ alignEnd, hideTitle }) => alignEnd === true && hideTitle !== true
    ).length
    const firstTitled = columns.findIndex(({ hideTitle }) => hideTitle !== true)
    return (
      <tr className={numberCount > 3 ? css["numbers"] : ""}>
        {columns.map(
          ({ title, cell, alignEnd, untitledOnPhone = false, hideTitle = false, noWrap }, index) => (
            <td
              key={title}
              data-title={hideTitle ? "" : title}
              data-plain={untitledOnPhone ? "" : undefined}
              data-head={index === firstTitled ? "" : undefined}
              className={`${alignEnd === true ? css["end"] : ""} ${noWrap === true || hideTitle ? css["whole"] : ""} ${hideTitle ? css["silent"] : ""}`}
            >
              {cell(row)}
            </td>
          )
        )}
      </tr>
    )
  }
}

export interface TableProps<A> {
  readonly label: string
  readonly columns: ReadonlyArray<Column<A>>
  /** The last cell of a row, with what can be done with it. Null if the user may do nothing. */
  readonly actions?: ((row: A) => ReactNode) | null
  readonly rows: ReadonlyArray<A>
  readonly keyOf: (row: A) => string
}

export const Table = <A,>({ label, columns: given, actions = null, rows, keyOf }: TableProps<A>) => {
  const t = useText(commonTexts)
  const columns: ReadonlyArray<Column<A>> =
    actions === null
      ? given
      : [...given, { title: t.actions, hideTitle: true, alignEnd: true, cell: actions }]
  return (
    <div className={css["frame"]}>
      <table className={css["table"]} aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ title, alignEnd, header, hideTitle }) => (
              <th key={title} scope="col" className={alignEnd === true ? css["end"] : ""}>
                {header ?? <span className={hideTitle === true ? "visually-hidden" : ""}>{title}</span>}
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
}
