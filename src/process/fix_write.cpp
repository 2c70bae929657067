// SPDX-License-Identifier: Apache-2.0
#include "process/fix_write.h"

#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"

namespace saturate {

namespace fs = std::filesystem;

void write_fixes(const FixPatch& patch, const FixQuestion& question, const fs::path& backup) {
    for (const EditedFile& file : patch.files) {
        if (read_if_there(question.folder / file.file) != file.before) {
            throw UserError({.where = {file.file},
                             .found = "the file changed while the fix was tried",
                             .expected = "the file as it was read",
                             .fix = "run fix again; the patch is in the output folder"});
        }
    }
    for (const EditedFile& file : patch.files) {
        fs::create_directories((backup / file.file).parent_path());
        write_file_whole(backup / file.file, file.before);
    }
    std::vector<const EditedFile*> written;
    try {
        for (const EditedFile& file : patch.files) {
            write_file_whole(question.folder / file.file, file.after);
            written.push_back(&file);
        }
    } catch (...) {
        // All files or none: restores those that were written.
        for (const EditedFile* file : written)
            write_file_whole(question.folder / file->file, file->before);
        throw;
    }
}

}  // namespace saturate
