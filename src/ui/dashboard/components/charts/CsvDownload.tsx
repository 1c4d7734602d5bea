/** A button that downloads a table as a CSV file. */
import { texts, useText } from "../../text/Language.tsx"
import { download } from "../../window/download.ts"
import { Button } from "../Button.tsx"
import { type Cell, csvOf } from "./csv.ts"

const words = texts(
  { download: "Download CSV", of: (title: string) => `Download CSV: ${title}` },
  { download: "CSV herunterladen", of: (title: string) => `CSV herunterladen: ${title}` }
)

interface Props {
  /** The content of the file, for screen readers. */
  readonly title: string
  /** Name of the file, without its extension. */
  readonly name: string
  readonly header: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<Cell>>
}

const save = (name: string, text: string) => {
  // The byte order mark makes spreadsheets read the file as UTF-8.
  const address = URL.createObjectURL(new Blob(["\uFEFF", text], { type: "text/csv;charset=utf-8" }))
  download(address, name)
  URL.revokeObjectURL(address)
}

export const CsvDownload = ({ header, name, rows, title }: Props) => {
  const t = useText(words)
  return (
    <Button kind="quiet" aria-label={t.of(title)} onClick={() => save(`${name}.csv`, csvOf(header, rows))}>
      {t.download}
    </Button>
  )
}
