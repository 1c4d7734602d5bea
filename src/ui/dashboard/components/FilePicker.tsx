/** Opens the browser's dialog for files, or for a folder with all of its files. */
import { type ReactNode, useRef } from "react"

interface Props {
  readonly onSelect: (files: FileList) => void
  /** Selects a folder instead of files. */
  readonly isFolder?: boolean
  /** The control. It calls `open` to open the dialog. */
  readonly children: (open: () => void) => ReactNode
}

export const FilePicker = ({ children, isFolder = false, onSelect }: Props) => {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <input
        ref={(element) => {
          input.current = element
          element?.toggleAttribute("webkitdirectory", isFolder)
        }}
        type="file"
        multiple
        hidden
        onChange={({ currentTarget }) => {
          if (currentTarget.files !== null && currentTarget.files.length > 0) onSelect(currentTarget.files)
          // Allows the same files to be chosen again.
          currentTarget.value = ""
        }}
      />
      {children(() => input.current?.click())}
    </>
  )
}
