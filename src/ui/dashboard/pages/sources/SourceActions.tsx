/** Controls that add sources to an agent: files and folders of this computer, and the form for everything else. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { useState } from "react"
import { atLeast, type User } from "../../api/Session.ts"
import { sources } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { FilePicker } from "../../components/FilePicker.tsx"
import { isEmptyList } from "../../components/Listing.tsx"
import { Menu } from "../../components/Menu.tsx"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Sources.module.css"
import { AddSource } from "./AddSource.tsx"
import { selectionFromPicker } from "./uploads/files.ts"
import { add } from "./uploads/queue.ts"
import { words as shared } from "./words.ts"

const words = texts(
  { files: "Upload files", folder: "Upload folder" },
  { files: "Dateien hochladen", folder: "Ordner hochladen" }
)

/**
 * The buttons that add sources, and the dialog that one of them opens. All are null for people who may only read.
 * `headButtons` are the same buttons for the head of the page; null while the empty list shows them.
 */
export const useSourceActions = (agentId: string, user: User) => {
  const t = useText(words)
  const names = useText(shared)
  const [isAdding, setAdding] = useState(false)
  const hasNone = isEmptyList(useInfiniteQuery(sources(agentId)), (page) => page.sources)
  if (!atLeast(user.role, "admin")) return { buttons: null, headButtons: null, dialog: null }
  const upload = (files: FileList) => add({ agentId, userId: user.id }, selectionFromPicker(files))
  const buttons = (
    <>
      <FilePicker onSelect={upload}>
        {(files) => (
          <FilePicker isFolder onSelect={upload}>
            {(folder) => (
              <>
                <Menu
                  actions={[
                    { label: t.files, does: files },
                    { label: t.folder, does: folder }
                  ]}
                />
                <span className={css["roomy"]}>
                  <Button onClick={files}>{t.files}</Button>
                </span>
              </>
            )}
          </FilePicker>
        )}
      </FilePicker>
      <Button kind="primary" onClick={() => setAdding(true)}>
        {names.add}
      </Button>
    </>
  )
  return {
    buttons,
    headButtons: hasNone ? null : buttons,
    dialog: <AddSource agentId={agentId} isOpen={isAdding} onClose={() => setAdding(false)} />
  }
}
