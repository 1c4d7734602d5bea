/** Storage of the tenant's data by kind, as of the last count. */
import type { Usage } from "../../api/Usage.ts"
import { Card } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import css from "./Usage.module.css"
import { words } from "./words.ts"

const kinds = ["messages", "runs", "knowledge", "vectors", "originals"] as const

export const Storage = ({ storage }: { readonly storage: Usage["storage"] }) => {
  const t = useText(words)
  const { bytes, moment, percent } = useFormat()
  if (storage === null)
    return (
      <Card title={t.storage}>
        <p className={css["term"]}>{t.notCounted}</p>
      </Card>
    )
  const { bytes: sizes, countedAt } = storage
  const total = kinds.reduce((sum, kind) => sum + sizes[kind], 0)
  return (
    <Card title={t.storage}>
      <p className={css["term"]}>{t.counted(bytes(total), moment(countedAt))}</p>
      <Table
        label={t.storage}
        rows={kinds}
        keyOf={(kind) => kind}
        columns={[
          { title: t.data, cell: (kind) => t[kind] },
          { title: t.size, alignEnd: true, cell: (kind) => bytes(sizes[kind]) },
          { title: t.share, alignEnd: true, cell: (kind) => percent(total === 0 ? 0 : sizes[kind] / total) }
        ]}
      />
    </Card>
  )
}
