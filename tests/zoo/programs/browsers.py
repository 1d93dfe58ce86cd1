# SPDX-License-Identifier: MIT
"""browsers.py - of the zoo: browsers, whose processes bring allocators, sandboxes and hundreds of threads of their own"""
from zoo import program

PAGE = r"""
cat > "$TMPDIR/page.html" <<'end'
<!DOCTYPE html><meta charset=utf-8><title>zoo</title><body style="margin:0;background:#fff"><canvas id=c width=300 height=200></canvas><p id=p></p>
<script>const c = document.getElementById('c').getContext('2d'); for (let i = 0; i < 60; i++) { c.fillStyle = `rgb(${i * 4},${255 - i * 4},128)`; c.fillRect(i * 5, i * 3, 40, 20); }
const m = new Map(); for (let i = 0; i < 200000; i++) m.set('k' + i * 7919 % 10007, { i }); document.getElementById('p').textContent = m.size;</script>
end
"""
CHROMIUM = r"chromium --headless --disable-gpu --no-first-run --disable-dev-shm-usage --hide-scrollbars --user-data-dir=$TMPDIR/profile "
program("chromium-version", packages="chromium", version="chromium --version 2>/dev/null", sees="chromium", limit_s=20, script="chromium --version --no-sandbox 2>/dev/null")
program("chromium", packages="chromium", version="chromium --version 2>/dev/null", sees="chromium", seconds=8, user="nobody", script=PAGE + CHROMIUM + r"""--no-sandbox \
	--screenshot=shot.png --window-size=400,300 "file://$TMPDIR/page.html" >/dev/null 2>&1; sha256sum shot.png
""" + CHROMIUM + r"""--no-sandbox --dump-dom "file://$TMPDIR/page.html" 2>/dev/null | grep -o '<p id="p">.*</p>'
""")
program("chromium-sandbox", packages="chromium", version="chromium --version 2>/dev/null", sees="chromium", seconds=8, user="nobody",
        prepare=r"unshare --user --map-root-user true || { echo 'no user namespaces for ordinary users here'; exit 77; }", script=PAGE + CHROMIUM + r"""\
	--screenshot=shot.png --window-size=400,300 "file://$TMPDIR/page.html" >/dev/null 2>&1; sha256sum shot.png
""")
program("firefox-version", packages="firefox-esr", version="firefox-esr --version", sees="firefox-esr", user="nobody", script="firefox-esr --version")
program("firefox", packages="firefox-esr", version="firefox-esr --version", sees="firefox-esr", seconds=15, limit_s=120, user="nobody", script=PAGE + r"""
mkdir "$TMPDIR/profile"; echo 'user_pref("app.update.enabled", false);' > "$TMPDIR/profile/user.js"
firefox-esr --headless --no-remote --profile "$TMPDIR/profile" --window-size=400,300 --screenshot "$PWD/shot.png" "file://$TMPDIR/page.html" >/dev/null 2>&1
file -b shot.png | cut -d , -f 1,2; test -s shot.png
""", needs="firefox-esr file")
