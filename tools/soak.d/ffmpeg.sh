# idea: a generated film through filters and codecs
# needs: ffmpeg=ffmpeg
f="ffmpeg -v error -nostdin -threads 2 -bitexact"
$f -f lavfi -i testsrc2=size=640x360:rate=25 -t 6 -pix_fmt yuv420p -f rawvideo r.yuv
raw="-f rawvideo -s 640x360 -pix_fmt yuv420p -i r.yuv"
for filter in hflip transpose scale=1000:500 boxblur=3 pad=700:400:9:9 format=rgb24,negate; do
    $f $raw -vf $filter -f rawvideo - | sha256sum
done
for codec in ffv1 mpeg4 mjpeg huffyuv; do
    $f $raw -c:v $codec -flags +bitexact x.mkv
    $f -i x.mkv -f rawvideo - | sha256sum
    rm x.mkv
done
rm r.yuv
